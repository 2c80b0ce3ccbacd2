export interface Chart {
  readonly title: string;
  readonly points: readonly { readonly x: string; readonly cpuUs: number; readonly rssMb: number }[];
}

const WIDTH = 400;
const HEIGHT = 240;
const LEFT = 48;
const RIGHT = 48;
const TOP = 44;
const BOTTOM = 36;

/** Small charts in rows of two: CPU per request in blue (left axis), memory in orange (right axis), both from zero. */
export function drawCharts(charts: readonly Chart[]): string {
  const rows = Math.ceil(charts.length / 2);
  const panels = charts.map((chart, at) => {
    const place = `translate(${(at % 2) * WIDTH} ${Math.floor(at / 2) * HEIGHT})`;
    return `<g transform="${place}">${drawChart(chart)}</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${2 * WIDTH} ${rows * HEIGHT}" font-family="sans-serif" font-size="11">
<rect width="100%" height="100%" fill="#fff"/>
${panels.join('\n')}
</svg>
`;
}

function drawChart({ title, points }: Chart): string {
  const x = (at: number): number => LEFT + ((WIDTH - LEFT - RIGHT) * (at + 0.5)) / points.length;
  const line = (values: readonly number[], color: string, unit: string, below: boolean): string => {
    const top = Math.max(...values) * 1.25;
    const y = (value: number): number => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * value) / top;
    const path = values.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
    const marks = values.map(
      (value, at) =>
        `<circle cx="${x(at).toFixed(1)}" cy="${y(value).toFixed(1)}" r="3" fill="${color}"/><text x="${x(at).toFixed(1)}" y="${(y(value) + (below ? 16 : -8)).toFixed(1)}" fill="${color}" text-anchor="middle">${value.toFixed(0)} ${unit}</text>`,
    );
    return `<polyline points="${path}" fill="none" stroke="${color}" stroke-width="2"/>${marks.join('')}`;
  };
  const names = points.map(
    (point, at) => `<text x="${x(at).toFixed(1)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${point.x}</text>`,
  );
  return [
    `<text x="${WIDTH / 2}" y="18" text-anchor="middle" font-size="13" font-weight="bold">CPU per request, memory: ${title}</text>`,
    `<line x1="${LEFT}" y1="${HEIGHT - BOTTOM}" x2="${WIDTH - RIGHT}" y2="${HEIGHT - BOTTOM}" stroke="#999"/>`,
    line(
      points.map((point) => point.cpuUs),
      '#1f6feb',
      'µs',
      false,
    ),
    line(
      points.map((point) => point.rssMb),
      '#d2691e',
      'MB',
      true,
    ),
    ...names,
  ].join('');
}
