# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A dissector for Wireshark in Lua: fields of the ids and comments of Airpath's captures.

A capture has the PDU's id as the packet's id, and in comments what the link did to the packet. The
script is made of the engine's causes, so that it knows each of them with class and meaning.
"""

from __future__ import annotations

from airpath.facts import CAUSES, EXIT_STATUSES

HEAD = """\
-- SPDX-FileCopyrightText: The Airpath authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Fields of the link's captures: the PDU's id, and what the link did to the packet.
-- Made by `airpath wireshark`, from the causes that the engine knows.

local causes = {
"""

BODY = """\
}

local airpath = Proto("airpath", "Airpath, the emulated link")

local fields = {
    pdu = ProtoField.uint64("airpath.pdu", "PDU"),
    direction = ProtoField.string("airpath.direction", "Direction"),
    fate = ProtoField.string("airpath.fate", "Fate"),
    cause = ProtoField.string("airpath.cause", "Cause"),
    class = ProtoField.string("airpath.class", "Class of the cause"),
    meaning = ProtoField.string("airpath.meaning", "Meaning of the cause"),
    hop = ProtoField.string("airpath.hop", "Hop"),
    after = ProtoField.double("airpath.after", "Time in the link in seconds"),
    flipped = ProtoField.uint32("airpath.flipped_bits", "Flipped bits"),
    kept = ProtoField.uint32("airpath.kept_bytes", "Remaining bytes"),
    marked = ProtoField.bool("airpath.marked", "Congestion experienced"),
}
for _, field in pairs(fields) do
    airpath.fields[#airpath.fields + 1] = field
end

local id_of = Field.new("frame.packet_id")
local direction_of = Field.new("frame.packet_flags_direction")
local comments_of = Field.new("frame.comment")

local directions = { [1] = "into the link", [2] = "out of the link" }

local function tell_cause(tree, word)
    tree:add(fields.cause, word)
    local known = causes[word]
    if known then
        tree:add(fields.class, known.class)
        tree:add(fields.meaning, known.meaning)
    end
end

local function tell(tree, comment)
    local cause, hop, after = comment:match("^dropped: (%S+) at (%S+) after ([%d.]+) s$")
    if cause then
        tree:add(fields.fate, "dropped")
        tell_cause(tree, cause)
        tree:add(fields.hop, hop)
        tree:add(fields.after, tonumber(after))
        return "dropped: " .. cause
    end
    cause = comment:match("^discarded: (%S+)$")
    if cause then
        tree:add(fields.fate, "discarded")
        tell_cause(tree, cause)
        return "discarded: " .. cause
    end
    local bits = comment:match("damaged: (%d+) bits flipped")
    if bits then
        tree:add(fields.fate, "damaged")
        tree:add(fields.flipped, tonumber(bits))
    end
    local bytes = comment:match("truncated: (%d+) of %d+ bytes left")
    if bytes then
        tree:add(fields.fate, "truncated")
        tree:add(fields.kept, tonumber(bytes))
    end
    if comment:find("marked: congestion experienced", 1, true) then
        tree:add(fields.fate, "marked")
        tree:add(fields.marked, true)
    end
    return nil
end

function airpath.dissector(buffer, pinfo, root)
    local id = id_of()
    local comments = { comments_of() }
    if not id and #comments == 0 then
        return
    end
    local tree = root:add(airpath)
    if id then
        tree:add(fields.pdu, id.value)
        tree:append_text(", PDU " .. tostring(id.value))
    end
    local direction = direction_of()
    if direction and directions[direction.value] then
        tree:add(fields.direction, directions[direction.value])
    end
    for _, comment in ipairs(comments) do
        local told = tell(tree, comment.value)
        if told then
            tree:append_text(", " .. told)
        end
    end
end

register_postdissector(airpath)
"""


def quoted(text: str) -> str:
    """Return a text as a string of Lua."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def script() -> str:
    """Return the dissector."""
    lines = [
        f"    [{quoted(cause.name)}] = "
        f"{{ class = {quoted(cause.group)}, meaning = {quoted(cause.meaning)} }},\n"
        for cause in CAUSES.values()
    ]
    return HEAD + "".join(lines) + BODY


def wireshark() -> int:
    """Carry ``airpath wireshark`` out."""
    print(script(), end="")
    return EXIT_STATUSES["done"]
