// The exact -KL and its derivatives in the browser: the arithmetic of logunif_kl/_arithmetic in
// float64, over the same coefficients, which the page carries as JSON.

const SPLITTER = 134217729; // 2^27 + 1
const SCALE = 2 ** 600;

function productError(a, b, product) {
  let aHigh = a * SPLITTER;
  aHigh = aHigh - (aHigh - a);
  const aLow = a - aHigh;
  let bHigh = b * SPLITTER;
  bHigh = bHigh - (bHigh - b);
  const bLow = b - bHigh;
  return aHigh * bHigh - product + aHigh * bLow + aLow * bHigh + aLow * bLow;
}

function times(z, high, low) {
  const scaled = z * SCALE;
  const product = scaled * high;
  return (product + (productError(scaled, high, product) + scaled * low)) / SCALE;
}

// P(v + vLow) as a sum of two words.
function polynomial(range, v, vLow) {
  const c = range.coefficients;
  let s = c[c.length - 1];
  for (let i = c.length - 2; i >= 1; i--) s = s * v + c[i];
  const p = v * s;
  const sHigh = c[0] + p;
  const sLow = c[0] - sHigh + p + productError(v, s, p);
  const q = v * sHigh;
  const qLow = productError(v, sHigh, q) + v * sLow + (vLow * sHigh + range.low);
  const high = range.high + q;
  return [high, range.high - high + q + qLow];
}

// The range of x = log alpha, P there, and 1/u or u.
function inLogAlpha(tables, name, x) {
  const ranges = tables[name];
  let i = 0;
  while (i + 1 < ranges.length && x <= ranges[i].bound) i++;
  const range = ranges[i];
  const recip = range.form === "recip";
  const a = recip ? 2 * Math.exp(x) : 0.5 * Math.exp(-x);
  let v = a - range.centre;
  let vLow = 0;
  if (range.form === "root") {
    v = x - tables.inflection[0];
    vLow = -tables.inflection[1];
  }
  return { form: range.form, a, p: polynomial(range, v, vLow) };
}

export function negKl(tables, x) {
  if (Number.isNaN(x)) return x;
  const { form, a, p } = inLogAlpha(tables, "neg_kl", x);
  if (form !== "recip") return times(form === "origin" ? a : 1, p[0], p[1]);
  if (x === -Infinity) return x;
  const line = 0.5 * x;
  const total = line + p[0];
  return total + (line - total + p[0] + p[1]);
}

export function negKlGrad(tables, x) {
  const { form, a, p } = inLogAlpha(tables, "neg_kl_grad", x);
  return times(form === "origin" ? a : 1, p[0], p[1]);
}

export function negKlHess(tables, x) {
  const { form, a, p } = inLogAlpha(tables, "neg_kl_hess", x);
  return times(form === "origin" || form === "recip" ? a : 1, p[0], p[1]);
}

// What the papers use, with the constants that they take.
export function approximations(constants) {
  const { kingma, molchanov, lower_bound: bound } = constants;
  const [c1, c2, c3] = kingma.coefficients;
  const [k1, k2, k3] = molchanov.coefficients;
  return {
    kingma: {
      value: (x) => {
        const alpha = Math.exp(x);
        return 0.5 * x + alpha * (c1 + alpha * (c2 + alpha * c3)) + kingma.constant;
      },
      slope: (x) => {
        const alpha = Math.exp(x);
        return 0.5 + alpha * (c1 + alpha * (2 * c2 + alpha * 3 * c3));
      },
    },
    molchanov: {
      value: (x) =>
        -k1 / (1 + Math.exp(k2 + k3 * x)) - 0.5 * (Math.max(0, -x) + Math.log1p(Math.exp(-Math.abs(x)))),
      slope: (x) => {
        const odds = Math.exp(-Math.abs(k2 + k3 * x));
        return (k1 * k3 * odds) / (1 + odds) ** 2 + 0.5 / (1 + Math.exp(x));
      },
    },
    lower_bound: { value: (x) => 0.5 * x + bound.constant, slope: () => 0.5 },
  };
}

const SVG = "http://www.w3.org/2000/svg";
const SIZE = { height: 260, left: 48, right: 12, top: 12, bottom: 34 };

function element(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent.append(made);
  return made;
}

function ticks(low, high, about) {
  const rough = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}

// Draw curves into an svg element; `curves` is a list of {points: [[x, y], ...], name}. `hover` has
// their values where the pointer is.
function draw(svg, hover, curves, low, high, at) {
  const width = Math.min(svg.clientWidth, 640); // on a phone letters keep their size
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${SIZE.height}`);
  const finite = curves.flatMap((curve) => curve.points.map((p) => p[1])).filter(Number.isFinite);
  let least = Math.min(...finite);
  let most = Math.max(...finite);
  if (!(most > least)) [least, most] = [least - 1, most + 1];
  const px = (x) => SIZE.left + ((x - low) / (high - low)) * (width - SIZE.left - SIZE.right);
  const py = (y) =>
    SIZE.height - SIZE.bottom - ((y - least) / (most - least)) * (SIZE.height - SIZE.top - SIZE.bottom);
  for (const x of ticks(low, high, width / 80)) {
    const label = element("text", { x: px(x), y: SIZE.height - 12, "text-anchor": "middle" }, svg);
    label.textContent = Number(x.toPrecision(6));
  }
  for (const y of ticks(least, most, 5)) {
    element("line", { class: "grid", x1: SIZE.left, x2: width - SIZE.right, y1: py(y), y2: py(y) }, svg);
    const label = element("text", { x: SIZE.left - 6, y: py(y) + 4, "text-anchor": "end" }, svg);
    label.textContent = Number(y.toPrecision(3));
  }
  for (const { name, points } of curves) {
    let path = "";
    let pen = "M"; // up, at the start and after what is outside
    for (const [x, y] of points) {
      if (Number.isFinite(y)) path += `${pen}${px(x).toFixed(2)} ${py(y).toFixed(2)}`;
      pen = Number.isFinite(y) ? "L" : "M";
    }
    element("path", { class: `curve ${name}`, d: path }, svg);
  }
  const line = { y1: SIZE.top, y2: SIZE.height - SIZE.bottom };
  element("line", { class: "at", x1: px(at), x2: px(at), ...line }, svg);
  const pointed = element("line", { class: "pointed", visibility: "hidden", ...line }, svg);
  svg.onpointermove = (event) => {
    const across = new DOMPoint(event.clientX, 0).matrixTransform(svg.getScreenCTM().inverse()).x;
    const share = (across - SIZE.left) / (width - SIZE.left - SIZE.right);
    const i = Math.round(Math.min(1, Math.max(0, share)) * (curves[0].points.length - 1));
    const x = curves[0].points[i][0];
    for (const end of ["x1", "x2"]) pointed.setAttribute(end, px(x));
    pointed.setAttribute("visibility", "visible");
    const values = curves.map(({ name, points }) => `${TITLES[name]} ${shown(points[i][1], (y) => y.toPrecision(4))}`);
    hover.textContent = `at log α = ${x.toFixed(2)}: ${values.join(", ")}`;
  };
}

const TITLES = { exact: "exact", kingma: "cubic", molchanov: "sigmoid", lower_bound: "bound" };

// A number, or a dash where double precision or the picture has none.
function shown(value, format) {
  return Number.isFinite(value) ? format(value) : "–";
}

function start(root) {
  const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const methods = approximations(data.constants);
  const find = (name) => root.querySelector(`[data-part='${name}']`);
  const number = (name) => Number(find(name).value);

  function curves(of) {
    const [low, high] = [number("low"), number("high")];
    const xs = Array.from({ length: 401 }, (_, i) => low + ((high - low) * i) / 400);
    const shown = Object.keys(methods).filter((name) => find(`show-${name}`).checked);
    return of(xs, shown, low, high);
  }

  function update() {
    const x = number("log-alpha-number"); // the slider has steps
    const [low, high] = [number("low"), number("high")];
    find("message").textContent = low < high ? "" : "The range is empty: its low end must be below its high end.";
    if (!(low < high)) return;
    const value = negKl(data.tables, x);
    const slope = negKlGrad(data.tables, x);
    const alpha = Math.exp(x);
    find("alpha").textContent = alpha > 0 && alpha < Infinity ? alpha.toPrecision(6) : `exp(${x})`;
    find("value-exact").textContent = value.toPrecision(17);
    find("slope-exact").textContent = slope.toPrecision(17);
    find("bend-exact").textContent = negKlHess(data.tables, x).toPrecision(17);
    for (const [name, method] of Object.entries(methods)) {
      const put = (part, y, format) => (find(`${part}-${name}`).textContent = shown(y, format));
      put("value", method.value(x), (y) => y.toPrecision(7));
      put("error", method.value(x) - value, (y) => y.toExponential(2));
      put("slope", method.slope(x), (y) => y.toPrecision(7));
      put("slope-error", 100 * (method.slope(x) / slope - 1), (y) => `${y.toPrecision(3)} %`);
    }
    const exact = (f) => (xs) => ({ name: "exact", points: xs.map((t) => [t, f(data.tables, t)]) });
    draw(
      find("values"),
      find("values-hover"),
      curves((xs, shown) => [
        exact(negKl)(xs),
        ...shown.map((name) => ({ name, points: xs.map((t) => [t, clipped(methods[name].value(t))]) })),
      ]),
      low,
      high,
      x,
    );
    draw(
      find("slopes"),
      find("slopes-hover"),
      curves((xs, shown) => [
        exact(negKlGrad)(xs),
        ...shown.map((name) => ({ name, points: xs.map((t) => [t, clippedSlope(methods[name].slope(t))]) })),
      ]),
      low,
      high,
      x,
    );
    draw(
      find("errors"),
      find("errors-hover"),
      curves((xs, shown) =>
        shown.length
          ? shown.map((name) => ({
              name,
              points: xs.map((t) => [t, small(methods[name].value(t) - negKl(data.tables, t))]),
            }))
          : [{ name: "exact", points: xs.map((t) => [t, 0]) }],
      ),
      low,
      high,
      x,
    );
  }

  // What is far outside of the picture would flatten all else.
  const clipped = (y) => (y > 1 ? NaN : y);
  const clippedSlope = (y) => (Math.abs(y) > 1.2 ? NaN : y);
  const small = (y) => (Math.abs(y) > 0.1 ? NaN : y);

  for (const [one, other] of [["log-alpha", "log-alpha-number"], ["log-alpha-number", "log-alpha"]]) {
    find(one).addEventListener("input", () => {
      find(other).value = find(one).value;
      update();
    });
  }
  for (const input of root.querySelectorAll("input")) {
    if (!input.dataset.part.startsWith("log-alpha")) input.addEventListener("input", update);
  }
  new ResizeObserver(update).observe(find("values"));
}

if (typeof document !== "undefined") {
  for (const root of document.querySelectorAll(".explore")) start(root);
}
