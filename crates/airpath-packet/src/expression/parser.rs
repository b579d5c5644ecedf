// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Parser of filter expressions. `and` and `or` have equal precedence and associate to the left, as in
//! libpcap.

mod number;
mod qualified;
mod words;

use airpath_core::nearest::nearest;

use super::token::{Token, tokens};
use super::{ExpressionError, MOST_BYTES, Node};
use qualified::Qualifiers;

/// Most parentheses, brackets and negations within each other.
const MOST_DEEP: u32 = 64;

pub(super) fn parse(text: &str) -> Result<Node, ExpressionError> {
    let wrong = |at, problem: &str| ExpressionError { text: text.into(), at, problem: problem.into() };
    if text.len() > MOST_BYTES {
        let shown = text.chars().take(40).collect::<String>();
        let problem = format!("it has {} bytes; at most {MOST_BYTES} are read", text.len());
        return Err(ExpressionError { text: shown, at: 0, problem });
    }
    let tokens = tokens(text).map_err(|at| wrong(at, "no word and no operator begins with this character"))?;
    if tokens.is_empty() {
        return Ok(Node::Everything);
    }
    let mut parser = Parser { text, tokens, next: 0, depth: 0, last: None };
    let root = parser.either()?;
    match parser.peek() {
        None => Ok(root),
        Some(")") => Err(parser.wrong("this parenthesis was never opened")),
        Some(word) => Err(parser.wrong(&format!("`and` or `or` is missing before `{word}`"))),
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    next: usize,
    depth: u32,
    /// The qualifiers of the last address or port, which the next one without any takes.
    last: Option<Qualifiers>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.next).map(|token| token.text)
    }

    fn after(&self) -> Option<&'a str> {
        self.tokens.get(self.next + 1).map(|token| token.text)
    }

    /// Takes the next token if it is one of `words`.
    fn take(&mut self, words: &[&str]) -> bool {
        let found = self.peek().is_some_and(|word| words.contains(&word));
        self.next += usize::from(found);
        found
    }

    fn word(&mut self, what: &str) -> Result<&'a str, ExpressionError> {
        let word = self.peek().ok_or_else(|| self.wrong(&format!("the filter ends where {what} should be")))?;
        self.next += 1;
        Ok(word)
    }

    /// An error at the next token.
    fn wrong(&self, problem: &str) -> ExpressionError {
        let at = self.tokens.get(self.next).map_or(self.text.len(), |token| token.at);
        ExpressionError { text: self.text.into(), at, problem: problem.into() }
    }

    /// An error at the token before the next one.
    fn wrong_before(&mut self, problem: &str) -> ExpressionError {
        self.next = self.next.saturating_sub(1);
        self.wrong(problem)
    }

    fn deeper<T>(&mut self, read: fn(&mut Self) -> Result<T, ExpressionError>) -> Result<T, ExpressionError> {
        if self.depth == MOST_DEEP {
            return Err(self.wrong(&format!("more than {MOST_DEEP} parentheses, brackets or negations are open here")));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn either(&mut self) -> Result<Node, ExpressionError> {
        let mut left = self.negated()?;
        loop {
            if self.take(&["and", "&&"]) {
                left = Node::And(Box::new(left), Box::new(self.negated()?));
            } else if self.take(&["or", "||"]) {
                left = Node::Or(Box::new(left), Box::new(self.negated()?));
            } else {
                return Ok(left);
            }
        }
    }

    fn negated(&mut self) -> Result<Node, ExpressionError> {
        if self.take(&["not", "!"]) {
            return Ok(Node::Not(Box::new(self.deeper(Self::negated)?)));
        }
        if let Some(relation) = self.relation()? {
            return Ok(Node::Relation(relation));
        }
        if self.take(&["("]) {
            let inner = self.deeper(Self::either)?;
            return if self.take(&[")"]) { Ok(inner) } else { Err(self.wrong("a `)` is missing here")) };
        }
        self.primitive()
    }

    /// An error about the next token, which is no word of the language here.
    fn unknown(&self) -> ExpressionError {
        let Some(word) = self.peek() else { return self.wrong("the filter ends where a condition should be") };
        let hint =
            nearest(word, words::all()).filter(|near| *near != word).map(|near| format!("; did you mean `{near}`?"));
        self.wrong(&format!("`{word}` is no condition{}", hint.unwrap_or_default()))
    }
}
