"use strict";
// What the diagrams of the page share: lists, ticks of axes, shapes of marks, and what moves and
// zooms them.
const drawing = (() => {
  const LEFT = 62; // of the time axis

  const summed = (steps) => {
    const values = new Float64Array(steps.length);
    let value = 0;
    for (let i = 0; i < steps.length; i++) values[i] = value += steps[i];
    return values;
  };

  const atOrAfter = (values, wanted) => {
    let low = 0, high = values.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] < wanted) low = middle + 1; else high = middle;
    }
    return low;
  };

  // A round step that leaves about so many ticks over a span.
  const tickStep = (span, count) => {
    const least = span / count, power = 10 ** Math.floor(Math.log10(least));
    return power * [1, 2, 5, 10].find((step) => step * power >= least * (1 - 1e-9));
  };

  const timeText = (us, step) => {
    const seconds = us / 1e6;
    const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step / 1e6))));
    return seconds.toFixed(digits);
  };

  const bytesUnit = (most) =>
    most >= 1e9 ? [1e9, "GB"] : most >= 1e6 ? [1e6, "MB"] : most >= 1e3 ? [1e3, "kB"] : [1, "B"];

  // Corners of closed shapes, in sizes from their middle. A cause has the shape that it has in
  // every picture, so that it is told apart without colour too.
  const regular = (corners, inner) => Array.from({ length: corners * (inner ? 2 : 1) }, (_, i, all) => {
    const turn = (2 * Math.PI * i) / (corners * (inner ? 2 : 1)), far = inner && i % 2 ? inner : 1.3;
    return [far * Math.sin(turn), -far * Math.cos(turn)];
  });
  const CORNERS = {
    triangle_down: [[-1, -1], [1, -1], [0, 1]],
    triangle_up: [[-1, 1], [1, 1], [0, -1]],
    triangle_left: [[1, -1], [1, 1], [-1, 0]],
    triangle_right: [[-1, -1], [-1, 1], [1, 0]],
    square: [[-1, -1], [1, -1], [1, 1], [-1, 1]],
    diamond: [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]],
    thin_diamond: [[0, -1.4], [0.7, 0], [0, 1.4], [-0.7, 0]],
    star: regular(5, 0.5),
    three_star: regular(3, 0.5),
    four_star: regular(4, 0.5),
    six_star: regular(6, 0.5),
    seven_star: regular(7, 0.5),
    eight_star: regular(8, 0.5),
    nine_star: regular(9, 0.5),
    pentagon: regular(5),
    hexagon: regular(6),
    octagon: regular(8),
    circle: regular(24),
  };
  // Bars through the middle, in sizes from it.
  const BARS = {
    cross: [[[-1, -1], [1, 1]], [[-1, 1], [1, -1]]],
    plus: [[[-1, 0], [1, 0]], [[0, -1], [0, 1]]],
  };

  const shape = (context, kind, x, y, size) => {
    context.beginPath();
    const line = ([first, ...rest]) => {
      context.moveTo(x + first[0] * size, y + first[1] * size);
      for (const [right, down] of rest) context.lineTo(x + right * size, y + down * size);
    };
    if (kind in BARS) BARS[kind].forEach(line);
    else {
      line(CORNERS[kind]);
      context.closePath();
    }
    context.stroke();
  };

  // A figure with a canvas, a legend that hides what it names, and a view that is moved and zoomed.
  // A view has an extent in time (t0, t1), and one upwards (y0, y1) if that is zoomed too. A kind of
  // figure has `draw`, `show` (takes a view), `zoom` (by a factor, around a place), `inside` (the
  // view of a box on the canvas, none if it is too small) and `tell` (what is at a place); `draw`
  // sets `width`, and `height` where views have an extent upwards.
  class Zoomed {
    constructor(figure) {
      this.figure = figure;
      this.canvas = figure.querySelector(".plot");
      this.told = figure.querySelector(".told");
      this.hidden = new Set();
      this.box = null;
    }

    // Begins with the whole in view.
    begin(whole) {
      this.whole = whole;
      this.view = { ...whole };
      this.addZoomButtons();
      this.listen();
    }

    // A button that shows and hides `key`; `line` draws its mark where it has no shape.
    addToLegend(key, text, colour, kind, line) {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.layer = key;
      button.setAttribute("aria-pressed", "true");
      const mark = document.createElement("canvas");
      mark.className = "mark";
      mark.width = mark.height = 32;
      const context = mark.getContext("2d");
      context.strokeStyle = colour;
      context.lineWidth = 5;
      if (kind) shape(context, kind, 16, 16, 10);
      else {
        context.beginPath(); context.moveTo(...line[0]); context.lineTo(...line[1]); context.stroke();
      }
      button.append(mark, ` ${text}`);
      button.addEventListener("click", () => {
        const shown = this.hidden.delete(key);
        if (!shown) this.hidden.add(key);
        button.setAttribute("aria-pressed", String(shown));
        this.draw();
      });
      this.figure.querySelector(".legend").append(button);
    }

    addZoomButtons() {
      const buttons = this.figure.querySelector(".buttons");
      for (const [text, label, action] of [
        ["+", "Zoom in", () => this.zoom(0.5)],
        ["\u2212", "Zoom out", () => this.zoom(2)],
        ["whole", "Show the whole", () => this.show(this.whole)],
      ]) {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = text;
        button.setAttribute("aria-label", label);
        button.addEventListener("click", action);
        buttons.append(button);
      }
    }

    listen() {
      const canvas = this.canvas;
      let from = null;
      const place = (event) => {
        const box = canvas.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
      };
      canvas.addEventListener("pointerdown", (event) => {
        const [x, y] = place(event);
        from = { x, y, view: { ...this.view }, box: event.shiftKey };
        canvas.setPointerCapture(event.pointerId);
      });
      canvas.addEventListener("pointermove", (event) => {
        const [x, y] = place(event);
        if (!from) { this.tell(x, y); return; }
        if (from.box) {
          this.box = [from.x, from.y, x, y];
          this.draw();
          return;
        }
        this.show(moved(from.view, (from.x - x) / this.width, (y - from.y) / this.height));
      });
      const release = () => {
        const box = this.box;
        from = null;
        this.box = null;
        if (!box) return;
        const view = this.inside(box);
        if (view) this.show(view); else this.draw();
      };
      canvas.addEventListener("pointerup", release);
      canvas.addEventListener("pointercancel", release);
      canvas.addEventListener("pointerleave", () => { this.told.textContent = ""; });
      canvas.addEventListener("dblclick", () => this.show(this.whole));
      canvas.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return; // a plain wheel scrolls the page
        event.preventDefault();
        this.zoom(event.deltaY < 0 ? 0.8 : 1.25, ...place(event));
      }, { passive: false });
      canvas.addEventListener("keydown", (event) => {
        const move = (right, up) => () => this.show(moved(this.view, right, up));
        const keys = {
          ArrowLeft: move(-1 / 8, 0), ArrowRight: move(1 / 8, 0),
          ...("y0" in this.view && { ArrowUp: move(0, 1 / 8), ArrowDown: move(0, -1 / 8) }),
          "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
          0: () => this.show(this.whole),
        };
        if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        keys[event.key]();
      });
    }

    x(time) { return LEFT + (time - this.view.t0) / (this.view.t1 - this.view.t0) * this.width; }
    time(x) { return this.view.t0 + (x - LEFT) / this.width * (this.view.t1 - this.view.t0); }

    // The part of a list that is in view, and one more on either side for lines.
    range(times) {
      return [Math.max(atOrAfter(times, this.view.t0) - 1, 0),
        Math.min(atOrAfter(times, this.view.t1) + 1, times.length)];
    }
  }

  // A view moved by shares of its extents.
  const moved = (view, right, up) => {
    const dt = right * (view.t1 - view.t0), dy = up * (view.y1 - view.y0);
    const across = { t0: view.t0 + dt, t1: view.t1 + dt };
    return "y0" in view ? { ...across, y0: view.y0 + dy, y1: view.y1 + dy } : across;
  };

  const isSeen = (part) => !part || part.open && isSeen(part.parentElement.closest("details"));

  // Reads and draws the figures of a kind when all parts of the page that they are in are open.
  const openWith = (Kind, parts, figures) => {
    const opened = new Map();
    const open = (figure) => {
      if (!opened.has(figure)) opened.set(figure, new Kind(figure));
      opened.get(figure).draw();
    };
    const openAll = () => {
      for (const part of document.querySelectorAll(parts)) {
        if (isSeen(part)) part.querySelectorAll(figures).forEach(open);
      }
    };
    // The event does not bubble.
    document.addEventListener("toggle", openAll, true);
    openAll();
    const again = (print) => () => {
      openAll();
      opened.forEach((each) => { each.print = print; each.draw(); });
    };
    window.addEventListener("resize", again(1));
    window.addEventListener("beforeprint", again(3));
    window.addEventListener("afterprint", again(1));
  };

  return { LEFT, summed, atOrAfter, tickStep, timeText, bytesUnit, shape, Zoomed, openWith };
})();
