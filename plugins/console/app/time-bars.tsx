import { useRef, useState } from 'preact/hooks';

/** Bars over time. A person drags over some to choose their time; tables have the same for the keyboard. */

export interface TimeBar {
  /** Start of the bar, which ends where the next one starts. */
  readonly at: string;
  readonly value: number;
  /** Part of the value that is drawn in the color of errors. */
  readonly bad?: number;
}

interface TimeBarsProps {
  readonly bars: readonly TimeBar[];
  /** End of the last bar. */
  readonly end: string;
  readonly label: string;
  readonly tone?: 'bad' | 'warn' | undefined;
  readonly onPick: (from: string, to: string) => void;
}

const HEIGHT = 28;
const STEP = 10;

/** First and last bar of a selection, in the order of dragging. */
type Span = readonly [from: number, to: number];

export function TimeBars({ bars, end, label, tone, onPick }: TimeBarsProps) {
  const box = useRef<SVGSVGElement>(null);
  const [span, setSpan] = useState<Span>();
  const most = Math.max(...bars.map(({ value }) => value), 0);
  const heightOf = (value: number): number => (most > 0 ? (value / most) * HEIGHT : 0);
  const barAt = ({ clientX }: PointerEvent): number => {
    const { left = 0, width = 1 } = box.current?.getBoundingClientRect() ?? {};
    return Math.min(Math.max(Math.floor(((clientX - left) / width) * bars.length), 0), bars.length - 1);
  };
  const [first, last] = span ? [Math.min(...span), Math.max(...span)] : [0, -1];
  return (
    <svg
      ref={box}
      class="sparkline wide-bars"
      role="img"
      aria-label={label}
      viewBox={`0 0 ${bars.length * STEP} ${HEIGHT}`}
      preserveAspectRatio="none"
      height={HEIGHT}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        setSpan([barAt(event), barAt(event)]);
      }}
      onPointerMove={(event) => span && setSpan([span[0], barAt(event)])}
      onPointerCancel={() => setSpan(undefined)}
      onPointerUp={() => {
        setSpan(undefined);
        const from = bars[first]?.at;
        if (span && from !== undefined) onPick(from, bars[last + 1]?.at ?? end);
      }}
    >
      <title>{`${label}. Drag over a time to list its calls.`}</title>
      {span && <rect class="span" x={first * STEP} y={0} width={(last - first + 1) * STEP} height={HEIGHT} />}
      {bars.map(({ at, value, bad = 0 }, place) => (
        <g key={at}>
          <rect x={place * STEP} y={HEIGHT - 1} width={STEP - 2} height={1} class="floor" />
          <rect
            x={place * STEP}
            y={HEIGHT - heightOf(value)}
            width={STEP - 2}
            height={heightOf(value)}
            class={tone ?? ''}
          />
          <rect x={place * STEP} y={HEIGHT - heightOf(bad)} width={STEP - 2} height={heightOf(bad)} class="bad" />
        </g>
      ))}
    </svg>
  );
}
