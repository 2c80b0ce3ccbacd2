import { useEffect, useRef } from 'preact/hooks';
import 'uplot/dist/uPlot.min.css';
import type uPlot from 'uplot';

export interface Series {
  readonly label: string;
  readonly values: readonly number[];
  /** Variable of the style sheet. */
  readonly colour: string;
}

/** Bar chart over the steps of a range. A table next to it has the same values, so screen readers skip the chart. */
export function Chart({
  steps,
  series,
  tell,
}: {
  steps: readonly string[];
  series: Series;
  tell: (value: number) => string;
}) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    let chart: uPlot | undefined;
    let isGone = false;
    const draw = async (): Promise<void> => {
      const { default: Plot } = await import('uplot');
      if (isGone) return;
      chart?.destroy();
      chart = new Plot(
        optionsOf(element, Plot, steps, series, tell),
        [steps.map((_, place) => place), [...series.values]],
        element,
      );
    };
    void draw();
    const sizes = new ResizeObserver(() => chart?.setSize({ width: element.clientWidth, height: HEIGHT }));
    sizes.observe(element);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const redraw = (): void => void draw();
    scheme.addEventListener('change', redraw);
    const switched = new MutationObserver(redraw);
    switched.observe(document.documentElement, { attributeFilter: ['data-scheme'] });
    return () => {
      isGone = true;
      chart?.destroy();
      sizes.disconnect();
      switched.disconnect();
      scheme.removeEventListener('change', redraw);
    };
  }, [steps.join(), series.label, series.values.join()]);
  return <div ref={box} class="chart" aria-hidden="true" />;
}

const HEIGHT = 200;

function optionsOf(
  element: HTMLElement,
  Plot: typeof uPlot,
  steps: readonly string[],
  series: Series,
  tell: (value: number) => string,
): uPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string): string => {
    const probe = document.createElement('span');
    probe.style.color = `var(${name})`;
    element.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const axis = {
    stroke: colour('--muted'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
    font: `11px ${style.fontFamily}`,
  };
  const fill = colour(series.colour);
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: false, range: [-0.5, Math.max(steps.length, 1) - 0.5] },
      y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.1 : 1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 28,
        values: (_plot, places) => places.map((place) => (Number.isInteger(place) ? shorten(steps[place]) : '')),
      },
      { ...axis, size: 64, values: (_plot, values) => values.map(tell) },
    ],
    series: [{}, { label: series.label, fill, stroke: fill, width: 0, points: { show: false }, paths: barsOf(Plot) }],
  };
}

function barsOf(Plot: typeof uPlot): uPlot.Series.PathBuilder {
  const { bars, linear } = Plot.paths;
  const make = bars?.({ size: [0.7, 48] }) ?? linear?.();
  if (!make) throw new TypeError('uPlot has no way to draw a series');
  return make;
}

/** `04:00` for an hour, `23 Nov` for a day. */
function shorten(step: string | undefined): string {
  if (step === undefined) return '';
  const [, date = '', clock] = /^(\d{4}-\d{2}(?:-\d{2})?)(?:T(\d{2}:\d{2}))?/.exec(step) ?? [];
  return clock ?? date.slice(5);
}
