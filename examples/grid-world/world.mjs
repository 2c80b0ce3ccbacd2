// A small world on a grid: `#` is a wall, `.` is free, `R` the robot, `G` the goal. Pure functions, no clock, no network.

export const MAP = Object.freeze([
  '##########',
  '#R..#....#',
  '#.#.#.##.#',
  '#.#...#..#',
  '#.#####.##',
  '#......G.#',
  '##########',
]);

export const DIRECTIONS = Object.freeze({ north: [-1, 0], east: [0, 1], south: [1, 0], west: [0, -1] });

/** Where a sign stands: `{ row, column }`, counted from 0 at the top left. */
export function find(map, sign) {
  const row = map.findIndex((line) => line.includes(sign));
  return row < 0 ? undefined : { row, column: map[row].indexOf(sign) };
}

export function step({ row, column }, direction) {
  const [down, right] = DIRECTIONS[direction];
  return { row: row + down, column: column + right };
}

export function isFree(map, { row, column }) {
  return map[row]?.[column] !== undefined && map[row][column] !== '#';
}

/** The map after the robot moved; a move into a wall changes nothing. */
export function move(map, direction) {
  const from = find(map, 'R');
  const to = step(from, direction);
  if (!isFree(map, to)) return map;
  return map.map((line, row) =>
    [...line].map((sign, column) => (is(to, row, column) ? 'R' : sign === 'R' ? '.' : sign)).join(''),
  );
}

/** Directions of a shortest way, or undefined without a way. Breadth first. */
export function findWay(map, from, to) {
  const queue = [{ at: from, way: [] }];
  const seen = new Set([key(from)]);
  for (const { at, way } of queue) {
    if (key(at) === key(to)) return way;
    for (const direction of Object.keys(DIRECTIONS)) {
      const next = step(at, direction);
      if (!isFree(map, next) || seen.has(key(next))) continue;
      seen.add(key(next));
      queue.push({ at: next, way: [...way, direction] });
    }
  }
  return undefined;
}

const key = ({ row, column }) => `${row},${column}`;
const is = (at, row, column) => at.row === row && at.column === column;
