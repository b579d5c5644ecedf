"use strict";
// What the diagrams of the page share: lists, ticks of axes, and shapes of marks.
const drawing = (() => {
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
    four_star: regular(4, 0.5),
    six_star: regular(6, 0.5),
    eight_star: regular(8, 0.5),
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

  return { summed, atOrAfter, tickStep, timeText, bytesUnit, shape };
})();
