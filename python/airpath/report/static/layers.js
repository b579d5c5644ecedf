"use strict";
// The layers of a link: each figure.layers has its data beside its canvas. Panels lie over each
// other with one time axis, which is moved and zoomed for all of them; each panel's height fits what
// is in view. Times are in microseconds.
(() => {
  const { LEFT, summed, atOrAfter, tickStep, timeText, shape } = drawing;
  const RIGHT = 12, TOP = 22, BOTTOM = 34, GAP = 16, NEAR = 14;
  const DEEPEST = 10; // microseconds across, at least
  const INK = "#333333", GRID = "#e4e4e4", STATE = "#7f7f7f";

  class Layers extends drawing.Zoomed {
    constructor(figure) {
      super(figure);
      const raw = JSON.parse(figure.querySelector(".data").textContent);
      this.states = raw.states;
      this.resets = raw.resets;
      this.panels = raw.panels.map((panel, number) => ({ ...panel, series: panel.series.map(
        (series, index) => ({ ...series, time: summed(series.time), key: `${number}-${index}` })) }));
      for (const series of this.panels.flatMap((panel) => panel.series)) {
        const count = series.shape ? ` (${series.count.toLocaleString("en")})` : "";
        const line = [[4, 16], [28, 16]];
        this.addToLegend(series.key, series.name + count, series.colour, series.shape, line);
      }
      const end = Math.max(raw.end, 1);
      this.begin({ t0: -0.01 * end, t1: 1.01 * end });
    }

    y(panel, value) {
      return panel.top + (1 - (value - panel.low) / (panel.high - panel.low)) * panel.height;
    }

    zoom(factor, x = LEFT + this.width / 2) {
      const t = this.time(x), v = this.view;
      this.show({ t0: t + (v.t0 - t) * factor, t1: t + (v.t1 - t) * factor });
    }

    // Takes a view, kept within what there is.
    show({ t0, t1 }) {
      const span = Math.min(Math.max(t1 - t0, DEEPEST), this.whole.t1 - this.whole.t0);
      const begin = Math.min(Math.max((t0 + t1 - span) / 2, this.whole.t0), this.whole.t1 - span);
      this.view = { t0: begin, t1: begin + span };
      this.draw();
    }

    inside([x0, , x1]) {
      if (Math.abs(x1 - x0) < 4) return null;
      return { t0: this.time(Math.min(x0, x1)), t1: this.time(Math.max(x0, x1)) };
    }

    shown(panel) { return panel.series.filter((series) => !this.hidden.has(series.key)); }

    // Divides the height among the panels, and fits each to what is in view.
    layOut(down) {
      const room = down - TOP - BOTTOM - GAP * (this.panels.length - 1);
      const all = this.panels.reduce((sum, panel) => sum + panel.ratio, 0);
      let top = TOP;
      for (const panel of this.panels) {
        panel.top = top;
        panel.height = room * panel.ratio / all;
        top += panel.height + GAP;
        let low = Infinity, high = -Infinity;
        for (const series of this.shown(panel)) {
          let [begin, end] = this.range(series.time);
          // A line holds its value into the view; a mark before it is none of it.
          if (series.shape) {
            begin = atOrAfter(series.time, this.view.t0);
            end = Math.min(end, atOrAfter(series.time, this.view.t1));
          }
          for (let i = begin; i < end; i++) {
            low = Math.min(low, series.value[i]);
            high = Math.max(high, series.value[i]);
          }
        }
        if (panel.zero) low = Math.min(low, 0);
        if (!(low <= high)) { low = 0; high = 1; }
        const margin = 0.06 * (high - low) || 0.5;
        panel.low = panel.zero && low === 0 ? 0 : low - margin;
        panel.high = high + margin;
      }
    }

    draw() {
      const canvas = this.canvas, sharpness = Math.max(window.devicePixelRatio || 1, this.print || 1);
      const across = canvas.clientWidth, down = canvas.clientHeight;
      if (!across || !down) return; // inside a closed part of the page
      canvas.width = across * sharpness;
      canvas.height = down * sharpness;
      this.width = across - LEFT - RIGHT;
      this.layOut(down);
      const context = canvas.getContext("2d");
      context.scale(sharpness, sharpness);
      context.fillStyle = "#ffffff";
      context.fillRect(0, 0, across, down);
      context.font = "12px system-ui, sans-serif";
      this.timeAxis(context);
      for (const panel of this.panels) {
        this.axis(context, panel);
        context.save();
        context.beginPath();
        context.rect(LEFT, panel.top, this.width, panel.height);
        context.clip();
        this.instants(context, panel, this.states.map(([time]) => time), STATE, [5, 3]);
        if (panel.resets) this.instants(context, panel, this.resets, "#000000", []);
        for (const series of this.shown(panel)) this.drawSeries(context, panel, series);
        context.restore();
      }
      if (this.box) {
        const [x0, , x1] = this.box;
        context.strokeStyle = INK;
        context.setLineDash([4, 3]);
        context.strokeRect(x0, TOP, x1 - x0, down - TOP - BOTTOM);
        context.setLineDash([]);
      }
      canvas.dataset.view = [this.view.t0, this.view.t1].map((each) => each.toFixed(1)).join(",");
      canvas.dataset.panels = this.panels.map(
        (panel) => `${panel.label}: ${panel.low.toFixed(3)} ${panel.high.toFixed(3)}`).join("; ");
    }

    timeAxis(context) {
      const v = this.view, last = this.panels.at(-1), bottom = last.top + last.height;
      const step = tickStep(v.t1 - v.t0, Math.max(2, this.width / 110));
      context.strokeStyle = GRID;
      context.fillStyle = INK;
      context.lineWidth = 1;
      context.textAlign = "center";
      context.textBaseline = "top";
      for (let i = Math.ceil(v.t0 / step); i * step <= v.t1; i++) {
        const x = Math.round(this.x(i * step)) + 0.5;
        for (const panel of this.panels) {
          context.beginPath(); context.moveTo(x, panel.top);
          context.lineTo(x, panel.top + panel.height); context.stroke();
        }
        context.fillText(timeText(i * step, step), x, bottom + 4);
      }
      context.fillText("Time since the run began (s)", LEFT + this.width / 2, bottom + 19);
      context.textAlign = "left";
      context.textBaseline = "alphabetic";
      let free = LEFT;
      for (const [time, name] of this.states) {
        const x = this.x(time);
        if (time < v.t0 || time > v.t1 || x < free) continue;
        context.fillText(name, x + 2, 12);
        free = x + context.measureText(name).width + 8;
      }
    }

    axis(context, panel) {
      const step = tickStep(panel.high - panel.low, Math.max(2, panel.height / 40));
      const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step))));
      context.textAlign = "right";
      context.textBaseline = "middle";
      context.fillStyle = INK;
      for (let i = Math.ceil(panel.low / step); i * step <= panel.high; i++) {
        const y = Math.round(this.y(panel, i * step)) + 0.5;
        context.strokeStyle = GRID;
        context.beginPath(); context.moveTo(LEFT, y); context.lineTo(LEFT + this.width, y);
        context.stroke();
        context.fillText((i * step).toFixed(digits), LEFT - 5, y);
      }
      context.strokeStyle = INK;
      context.beginPath(); context.moveTo(LEFT + 0.5, panel.top);
      context.lineTo(LEFT + 0.5, panel.top + panel.height);
      context.lineTo(LEFT + this.width, panel.top + panel.height); context.stroke();
      context.save();
      context.translate(12, panel.top + panel.height / 2);
      context.rotate(-Math.PI / 2);
      context.textAlign = "center";
      context.fillText(panel.label, 0, 0);
      context.restore();
    }

    instants(context, panel, times, colour, dash) {
      context.strokeStyle = colour;
      context.lineWidth = 1;
      context.setLineDash(dash);
      for (const time of times) {
        if (time < this.view.t0 || time > this.view.t1) continue;
        const x = this.x(time);
        context.beginPath(); context.moveTo(x, panel.top);
        context.lineTo(x, panel.top + panel.height); context.stroke();
      }
      context.setLineDash([]);
    }

    drawSeries(context, panel, { time, value, colour, shape: kind, size }) {
      const [begin, end] = this.range(time);
      if (begin >= end) return;
      context.strokeStyle = colour;
      context.lineWidth = 1.3;
      if (kind) {
        for (let i = begin; i < end; i++) {
          shape(context, kind, this.x(time[i]), this.y(panel, value[i]), size);
        }
        return;
      }
      context.beginPath();
      context.moveTo(this.x(time[begin]), this.y(panel, value[begin]));
      for (let i = begin + 1; i < end; i++) {
        context.lineTo(this.x(time[i]), this.y(panel, value[i - 1]));
        context.lineTo(this.x(time[i]), this.y(panel, value[i]));
      }
      context.stroke();
    }

    // Says what is nearest to a place, in the panel that it is in.
    tell(x, y) {
      let best = NEAR, text = "";
      for (const panel of this.panels) {
        if (y < panel.top || y > panel.top + panel.height) continue;
        for (const { time, value, name } of this.shown(panel)) {
          for (let i = atOrAfter(time, this.time(x - NEAR));
            i < time.length && this.x(time[i]) <= x + NEAR; i++) {
            const far = Math.hypot(this.x(time[i]) - x, this.y(panel, value[i]) - y);
            if (far >= best) continue;
            best = far;
            text = `${(time[i] / 1e6).toFixed(6)} s: ${panel.label}, ${name}: `
              + value[i].toLocaleString("en", { maximumFractionDigits: 6 });
          }
        }
      }
      this.told.textContent = text;
    }
  }

  drawing.openWith(Layers, "details.layers", "figure.layers");
})();
