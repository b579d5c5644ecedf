"use strict";
// Time-sequence diagrams: each figure.diagram has its data beside its canvas. Times are in
// microseconds, sequence numbers in bytes; lists named below as steps hold differences.
(() => {
  const colours = JSON.parse(document.getElementById("colours").textContent);
  const RETRANSMISSION = 1, DAMAGED = 2, CAUSE_SHIFT = 2;
  const RIGHT = 12, SCALE = 56, TOP = 22, BOTTOM = 34, NEAR = 14;
  const DEEPEST = 10; // microseconds across, at least
  const INK = "#333333", GRID = "#e4e4e4";
  const DAMAGED_SHAPE = "hexagon";

  const { LEFT, summed, atOrAfter, tickStep, timeText, bytesUnit, shape } = drawing;

  class Diagram extends drawing.Zoomed {
    constructor(figure) {
      super(figure);
      const raw = JSON.parse(figure.querySelector(".data").textContent);
      this.causes = raw.causes;
      this.states = raw.states;
      const s = raw.segments;
      this.segments = { time: summed(s.time), first: summed(s.first), length: s.length,
        mark: s.mark, joined: s.joined };
      this.answers = { time: summed(raw.acknowledgements.time),
        number: summed(raw.acknowledgements.number) };
      this.blocks = { time: summed(raw.selective.time), first: raw.selective.first,
        length: raw.selective.length };
      this.lost = { time: summed(raw.lost.time), number: raw.lost.number, cause: raw.lost.cause };
      // What the kernel knew, each with a scale of its own to the right.
      const course = (of) => ({ time: summed(of.time ?? []), value: of.value ?? [],
        most: Math.max(1, ...(of.value ?? [])) * 1.05 });
      const widest = Math.max(1, ...(raw.kernel.cwnd.value ?? []));
      const [perWindow, windowUnit] = bytesUnit(widest);
      this.kernel = { cwnd: course(raw.kernel.cwnd), rto: course(raw.kernel.rto) };
      Object.assign(this.kernel.cwnd, { text: `cwnd (${windowUnit})`, per: perWindow });
      Object.assign(this.kernel.rto, this.kernel.rto.most > 2000
        ? { text: "RTO (s)", per: 1000 } : { text: "RTO (ms)", per: 1 });
      this.bands = raw.kernel.bands;
      const end = Math.max(raw.end, this.segments.time.at(-1) ?? 0, 1);
      const most = Math.max(raw.bytes, 1);
      [this.divisor, this.unit] = bytesUnit(most);
      this.buildLegend();
      this.begin({ t0: -0.01 * end, t1: 1.01 * end, y0: -0.03 * most, y1: 1.04 * most });
    }

    count(test) {
      let number = 0;
      for (const mark of this.segments.mark) if (test(mark)) number++;
      return number;
    }

    buildLegend() {
      const total = this.segments.joined.length
        ? this.segments.joined.reduce((sum, each) => sum + each, 0) : this.segments.mark.length;
      const repeated = this.count((mark) => mark & RETRANSMISSION);
      const add = (key, text, number, colour, kind) => {
        if (!number) return;
        const line = [[16, 4], [16, 28]];
        this.addToLegend(key, `${text} (${number.toLocaleString("en")})`, colour, kind, line);
      };
      add("segment", "segments", total - repeated, colours.segment);
      add("retransmission", "retransmissions", repeated, colours.retransmission);
      add("acknowledged", "acknowledged", this.answers.time.length, colours.acknowledged);
      add("selective", "SACK blocks", this.blocks.time.length, colours.selective);
      this.causes.forEach((cause, index) => {
        const number = this.count((mark) => mark >> CAUSE_SHIFT === index + 1)
          + this.lost.cause.filter((each) => each === index + 1).length;
        add(`cause-${cause.name}`, `dropped, ${cause.text}`, number, cause.colour, cause.shape);
      });
      add("damaged", "damaged", this.count((mark) => mark & DAMAGED), "#b5a600", DAMAGED_SHAPE);
      add("cwnd", "cwnd", this.kernel.cwnd.time.length, colours.cwnd);
      add("rto", "RTO", this.kernel.rto.time.length, colours.rto);
      add("bands", "recovery and other states of the kernel", this.bands.length, colours.bands);
    }

    y(bytes) {
      return TOP + (1 - (bytes - this.view.y0) / (this.view.y1 - this.view.y0)) * this.height;
    }
    bytes(y) {
      return this.view.y0 + (1 - (y - TOP) / this.height) * (this.view.y1 - this.view.y0);
    }

    zoom(factor, x = LEFT + this.width / 2, y = TOP + this.height / 2) {
      const t = this.time(x), b = this.bytes(y), v = this.view;
      this.show({ t0: t + (v.t0 - t) * factor, t1: t + (v.t1 - t) * factor,
        y0: b + (v.y0 - b) * factor, y1: b + (v.y1 - b) * factor });
    }

    // Takes a view, kept within what there is.
    show(view) {
      const fit = (low, high, least, from, to) => {
        const span = Math.min(Math.max(high - low, least), to - from);
        const middle = (low + high) / 2;
        const begin = Math.min(Math.max(middle - span / 2, from), to - span);
        return [begin, begin + span];
      };
      const [t0, t1] = fit(view.t0, view.t1, DEEPEST, this.whole.t0, this.whole.t1);
      const [y0, y1] = fit(view.y0, view.y1, 1, this.whole.y0, this.whole.y1);
      this.view = { t0, t1, y0, y1 };
      this.draw();
    }

    inside([x0, y0, x1, y1]) {
      if (Math.abs(x1 - x0) < 4 || Math.abs(y1 - y0) < 4) return null;
      return { t0: this.time(Math.min(x0, x1)), t1: this.time(Math.max(x0, x1)),
        y0: this.bytes(Math.max(y0, y1)), y1: this.bytes(Math.min(y0, y1)) };
    }

    draw() {
      const canvas = this.canvas, sharpness = Math.max(window.devicePixelRatio || 1, this.print || 1);
      const across = canvas.clientWidth, down = canvas.clientHeight;
      if (!across || !down) return; // inside a closed part of the page
      canvas.width = across * sharpness;
      canvas.height = down * sharpness;
      const scales = ["cwnd", "rto"].filter(
        (key) => this.kernel[key].time.length && !this.hidden.has(key));
      this.width = across - LEFT - RIGHT - SCALE * scales.length;
      this.height = down - TOP - BOTTOM;
      const context = canvas.getContext("2d");
      context.scale(sharpness, sharpness);
      context.fillStyle = "#ffffff";
      context.fillRect(0, 0, across, down);
      context.font = "12px system-ui, sans-serif";
      this.axes(context);
      scales.forEach((key, index) => this.scale(context, key, index));
      context.save();
      context.beginPath();
      context.rect(LEFT, TOP, this.width, this.height);
      context.clip();
      if (!this.hidden.has("bands")) this.drawBands(context);
      this.drawStates(context);
      for (const key of scales) this.drawCourse(context, key);
      if (!this.hidden.has("selective")) this.drawBlocks(context);
      if (!this.hidden.has("acknowledged")) this.drawAnswers(context);
      this.drawSegments(context);
      this.drawLost(context);
      if (this.box) {
        const [x0, y0, x1, y1] = this.box;
        context.strokeStyle = INK;
        context.setLineDash([4, 3]);
        context.strokeRect(x0, y0, x1 - x0, y1 - y0);
      }
      context.restore();
      const v = this.view;
      canvas.dataset.view = [v.t0, v.t1, v.y0, v.y1].map((each) => each.toFixed(1)).join(",");
    }

    axes(context) {
      const v = this.view;
      context.strokeStyle = GRID;
      context.fillStyle = INK;
      context.lineWidth = 1;
      const stepT = tickStep(v.t1 - v.t0, Math.max(2, this.width / 110));
      context.textAlign = "center";
      context.textBaseline = "top";
      for (let i = Math.ceil(v.t0 / stepT); i * stepT <= v.t1; i++) {
        const x = Math.round(this.x(i * stepT)) + 0.5;
        context.beginPath(); context.moveTo(x, TOP); context.lineTo(x, TOP + this.height);
        context.stroke();
        context.fillText(timeText(i * stepT, stepT), x, TOP + this.height + 4);
      }
      context.fillText("Time since the run began (s)", LEFT + this.width / 2,
        TOP + this.height + 19);
      const stepY = tickStep((v.y1 - v.y0) / this.divisor, Math.max(2, this.height / 55));
      const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(stepY))));
      context.textAlign = "right";
      context.textBaseline = "middle";
      for (let i = Math.ceil(v.y0 / this.divisor / stepY); i * stepY * this.divisor <= v.y1; i++) {
        const y = Math.round(this.y(i * stepY * this.divisor)) + 0.5;
        context.beginPath(); context.moveTo(LEFT, y); context.lineTo(LEFT + this.width, y);
        context.stroke();
        context.fillText((i * stepY).toFixed(digits), LEFT - 6, y);
      }
      context.save();
      context.translate(11, TOP + this.height / 2);
      context.rotate(-Math.PI / 2);
      context.textAlign = "center";
      context.fillText(`Sequence number (${this.unit})`, 0, 0);
      context.restore();
      context.strokeStyle = INK;
      context.beginPath();
      context.moveTo(LEFT + 0.5, TOP); context.lineTo(LEFT + 0.5, TOP + this.height + 0.5);
      context.lineTo(LEFT + this.width, TOP + this.height + 0.5);
      context.stroke();
      // Names of states, as far as there is room for them.
      let free = LEFT;
      context.textAlign = "left";
      for (const [time, name] of this.states) {
        if (time < v.t0 || time > v.t1) continue;
        const x = this.x(time), wide = context.measureText(name).width;
        if (x < free || x + wide > LEFT + this.width) continue;
        context.fillText(name, x + 2, 12);
        free = x + wide + 8;
      }
    }

    // The height of a kernel's value: its scale is the whole height, however the view is zoomed.
    level(key, value) {
      return TOP + (1 - value / this.kernel[key].most) * this.height;
    }

    scale(context, key, index) {
      const { most, per, text } = this.kernel[key];
      const x = LEFT + this.width + SCALE * index + 6;
      context.save();
      context.fillStyle = context.strokeStyle = colours[key];
      context.beginPath(); context.moveTo(x, TOP); context.lineTo(x, TOP + this.height);
      context.stroke();
      context.textAlign = "left";
      context.textBaseline = "middle";
      const step = tickStep(most / per, Math.max(2, this.height / 70));
      const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step))));
      for (let i = 0; i * step * per <= most; i++) {
        const y = this.level(key, i * step * per);
        context.beginPath(); context.moveTo(x, y); context.lineTo(x + 4, y); context.stroke();
        context.fillText((i * step).toFixed(digits), x + 6, y);
      }
      context.translate(x + 44, TOP + this.height / 2);
      context.rotate(-Math.PI / 2);
      context.textAlign = "center";
      context.fillText(text, 0, 0);
      context.restore();
    }

    drawCourse(context, key) {
      const { time, value } = this.kernel[key], [begin, end] = this.range(time);
      if (begin >= end) return;
      context.strokeStyle = colours[key];
      context.lineWidth = 1.2;
      context.setLineDash(key === "rto" ? [6, 3] : []);
      context.beginPath();
      context.moveTo(this.x(time[begin]), this.level(key, value[begin]));
      for (let i = begin + 1; i < end; i++) {
        context.lineTo(this.x(time[i]), this.level(key, value[i - 1]));
        context.lineTo(this.x(time[i]), this.level(key, value[i]));
      }
      context.stroke();
      context.setLineDash([]);
    }

    drawBands(context) {
      context.save();
      context.font = "10px system-ui, sans-serif";
      context.textBaseline = "bottom";
      context.textAlign = "left";
      for (const [from, to, name] of this.bands) {
        if (to < this.view.t0 || from > this.view.t1) continue;
        const x = this.x(from), wide = Math.max(this.x(to) - x, 1);
        context.globalAlpha = name === "loss" ? 0.4 : 0.2;
        context.fillStyle = name === "loss" ? colours.retransmission : colours.bands;
        context.fillRect(x, TOP, wide, this.height);
        context.globalAlpha = 1;
        context.fillStyle = INK;
        if (context.measureText(name).width + 4 < wide) {
          context.fillText(name, x + 2, TOP + this.height - 2);
        }
      }
      context.restore();
    }

    drawStates(context) {
      context.strokeStyle = colours.state;
      context.lineWidth = 1;
      context.setLineDash([5, 3]);
      for (const [time] of this.states) {
        if (time < this.view.t0 || time > this.view.t1) continue;
        const x = this.x(time);
        context.beginPath(); context.moveTo(x, TOP); context.lineTo(x, TOP + this.height);
        context.stroke();
      }
      context.setLineDash([]);
    }

    bar(context, x, low, high) {
      const top = this.y(high), bottom = this.y(low);
      context.moveTo(x, bottom);
      context.lineTo(x, Math.min(top, bottom - 1)); // too short to be seen is still a dot
    }

    drawBlocks(context) {
      const { time, first, length } = this.blocks, [begin, end] = this.range(time);
      context.strokeStyle = colours.selective;
      context.lineWidth = 0.8;
      context.beginPath();
      for (let i = begin; i < end; i++) {
        this.bar(context, this.x(time[i]), first[i], first[i] + length[i]);
      }
      context.stroke();
    }

    drawAnswers(context) {
      const { time, number } = this.answers, [begin, end] = this.range(time);
      if (begin >= end) return;
      context.strokeStyle = colours.acknowledged;
      context.lineWidth = 1.3;
      context.beginPath();
      context.moveTo(this.x(time[begin]), this.y(number[begin]));
      for (let i = begin + 1; i < end; i++) {
        context.lineTo(this.x(time[i]), this.y(number[i - 1]));
        context.lineTo(this.x(time[i]), this.y(number[i]));
      }
      context.stroke();
    }

    drawSegments(context) {
      const { time, first, length, mark } = this.segments, [begin, end] = this.range(time);
      for (const again of [0, RETRANSMISSION]) {
        if (this.hidden.has(again ? "retransmission" : "segment")) continue;
        context.strokeStyle = again ? colours.retransmission : colours.segment;
        context.lineWidth = again ? 3 : 2;
        context.beginPath();
        for (let i = begin; i < end; i++) {
          if ((mark[i] & RETRANSMISSION) === again) {
            this.bar(context, this.x(time[i]), first[i], first[i] + length[i]);
          }
        }
        context.stroke();
      }
      context.lineWidth = 1.6;
      for (let i = begin; i < end; i++) {
        if (mark[i] < DAMAGED) continue;
        const cause = mark[i] >> CAUSE_SHIFT;
        const x = this.x(time[i]), y = this.y(first[i] + length[i] / 2);
        if (cause) this.drop(context, cause - 1, x, y, 4);
        else if (mark[i] & DAMAGED && !this.hidden.has("damaged")) {
          context.strokeStyle = "#b5a600";
          shape(context, DAMAGED_SHAPE, x, y, 4);
        }
      }
    }

    drop(context, cause, x, y, size) {
      if (this.hidden.has(`cause-${this.causes[cause].name}`)) return;
      context.strokeStyle = this.causes[cause].colour;
      shape(context, this.causes[cause].shape, x, y, size);
    }

    drawLost(context) {
      const { time, number, cause } = this.lost, [begin, end] = this.range(time);
      context.lineWidth = 1.2;
      for (let i = begin; i < end; i++) {
        if (cause[i]) this.drop(context, cause[i] - 1, this.x(time[i]), this.y(number[i]), 2.5);
      }
    }

    // Says what is nearest to a place.
    tell(x, y) {
      let best = NEAR, text = "";
      const near = (times, distance, describe) => {
        const begin = atOrAfter(times, this.time(x - NEAR));
        for (let i = begin; i < times.length && this.x(times[i]) <= x + NEAR; i++) {
          const across = Math.abs(this.x(times[i]) - x);
          const far = Math.hypot(across, distance(i));
          if (far < best) { best = far; text = `${(times[i] / 1e6).toFixed(6)} s: ${describe(i)}`; }
        }
      };
      const toBar = (low, high) => {
        const top = this.y(high), bottom = this.y(low);
        return y < top ? top - y : y > bottom ? y - bottom : 0;
      };
      const whole = (number) => number.toLocaleString("en");
      const s = this.segments;
      near(s.time, (i) => toBar(s.first[i], s.first[i] + s.length[i]), (i) => {
        const cause = s.mark[i] >> CAUSE_SHIFT;
        const kind = s.joined.length && s.joined[i] > 1 ? `${whole(s.joined[i])} segments`
          : s.mark[i] & RETRANSMISSION ? "retransmission" : "segment";
        return `${kind}, bytes ${whole(s.first[i])} to ${whole(s.first[i] + s.length[i])}`
          + (cause ? `, dropped: ${this.causes[cause - 1].text}` : "")
          + (s.mark[i] & DAMAGED ? ", damaged" : "");
      });
      const a = this.answers;
      if (!this.hidden.has("acknowledged")) {
        near(a.time, (i) => Math.abs(this.y(a.number[i]) - y),
          (i) => `acknowledged up to ${whole(a.number[i])}`);
      }
      const b = this.blocks;
      if (!this.hidden.has("selective")) {
        near(b.time, (i) => toBar(b.first[i], b.first[i] + b.length[i]),
          (i) => `SACK, bytes ${whole(b.first[i])} to ${whole(b.first[i] + b.length[i])}`);
      }
      for (const [key, name] of [["cwnd", "cwnd"], ["rto", "RTO"]]) {
        if (this.hidden.has(key)) continue;
        const of = this.kernel[key];
        near(of.time, (i) => Math.abs(this.level(key, of.value[i]) - y), (i) =>
          `${name} ${whole(of.value[i])} ${key === "rto" ? "ms" : "bytes"}`);
      }
      const l = this.lost;
      near(l.time, (i) => Math.abs(this.y(l.number[i]) - y), (i) =>
        `acknowledgement of ${whole(l.number[i])}, dropped`
        + (l.cause[i] ? `: ${this.causes[l.cause[i] - 1].text}` : ""));
      this.told.textContent = text;
    }
  }

  drawing.openWith(Diagram, "details.diagrams", "figure.diagram");
})();
