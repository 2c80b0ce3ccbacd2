/** Shapes of the navigation's icons: paths in a square of 16, drawn as lines. */
export const ICONS = Object.freeze({
  home: 'M2.5 7 8 2.5 13.5 7v6.5h-4V10h-3v3.5h-4z',
  lines: 'M2.5 4h11m-11 4h11m-11 4h7',
  bars: 'M3 13.5V8m5 5.5v-11m5 11V6',
  key: 'M9 8a3.5 3.5 0 1 0-7 0 3.5 3.5 0 0 0 7 0zm0 0h5v3m-2.5-3v2',
  person: 'M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zm-5 5.5a5 5 0 0 1 10 0',
  people:
    'M6 7.5A2.2 2.2 0 1 0 6 3a2.2 2.2 0 0 0 0 4.5zM2 13a4 4 0 0 1 8 0m.5-9.8a2.2 2.2 0 0 1 0 4.2M12 9.5a4 4 0 0 1 2 3.5',
  card: 'M2 3.5h12v9H2zm0 3h12',
  coin: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM8 5v6m1.7-4.6c-.8-.8-3.4-.7-3.4.6s3.4.8 3.4 2.1-2.6 1.5-3.4.6',
  cube: 'm8 2 5.5 3v6L8 14l-5.5-3V5zM2.5 5 8 8l5.5-3M8 8v6',
  target: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM8 6a2 2 0 1 0 0 4 2 2 0 0 0 0-4z',
  chat: 'M2.5 3h11v8H7l-3 2.5V11H2.5z',
  sound: 'M3 6.5v3M6 4v8m3-6v4m3-7.5v11',
  tree: 'M8 6.5V10m-4 0h8m-4-3.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM2.5 10h3v3.5h-3zm8 0h3v3.5h-3z',
  stack: 'M2.5 3h11v4h-11zm0 6h11v4h-11zM5 5h.5M5 11h.5',
  check: 'm3 8.5 3.5 3.5L13 5',
  plug: 'M6 2v3m4-3v3M4.5 5h7v3a3.5 3.5 0 0 1-7 0zM8 11.5V14',
  sliders:
    'M2.5 5h6m3 0h2m-11 6h2m3 0h6M10 3.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3zm-4 6a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3z',
  pencil: 'M3 13l.6-2.8L11 2.8 13.2 5l-7.4 7.4zM9.5 4.3l2.2 2.2',
  record: 'M4 2.5h8v11H4zM6 8l1.5 1.5L10.5 6',
});

/** Icon next to a word, for sighted people alone. */
export function Icon({ shape }: { shape: keyof typeof ICONS }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={ICONS[shape]} />
    </svg>
  );
}
