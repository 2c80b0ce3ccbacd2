import { expect } from 'chai';
import { allPoints, drawMutants } from '../mutants/draw.ts';
import { idOf, mutate, pointsOf } from '../mutants/points.ts';
import { withTable } from '../mutants/table.ts';

const SOURCE = `
interface Ignored { readonly size: 1 }
class Pool { #take(size: number): number | undefined { if (size > 1 && this.free) return size - 1; this.drop(); return; } }
export const ratio = (a: number, b?: number) => a / (b ?? 1);
// µ: offsets count UTF-16 units.
function isSame(one: string, other: string) { return [one].some((each) => each === other); }
`;

describe('mutants', () => {
  it('name a function, a kind of change and its number', () => {
    const ids = pointsOf('a.ts', SOURCE).map(
      (point) => `${idOf(point)}: ${SOURCE.slice(point.start, point.end)} -> ${point.replacement}`,
    );
    expect(ids).to.deep.equal([
      'a.ts Pool.#take negate 1: size > 1 && this.free -> !(size > 1 && this.free)',
      'a.ts Pool.#take logic 1: && -> ||',
      'a.ts Pool.#take boundary 1: > -> >=',
      'a.ts Pool.#take return 1: return size - 1; -> return undefined;',
      'a.ts Pool.#take arithmetic 1: - -> +',
      'a.ts Pool.#take remove 1: this.drop(); -> ;',
      'a.ts ratio arithmetic 1: / -> *',
      'a.ts ratio default 1: b ?? 1 -> (1)',
      'a.ts isSame return 1: return [one].some((each) => each === other); -> return undefined;',
      'a.ts isSame equality 1: === -> !==',
    ]);
  });

  it('are one change each', () => {
    const [point] = pointsOf('a.ts', SOURCE);
    expect(point && mutate(SOURCE, point)).to.equal(
      SOURCE.replace('size > 1 && this.free', '!(size > 1 && this.free)'),
    );
  });

  it('of one seed are the same in each run, others than those of another seed, and of one function at most one', () => {
    const points = allPoints(['contract/']);
    const ids = drawMutants(points, 1, 40).map(idOf);
    expect(drawMutants(points, 1, 40).map(idOf)).to.deep.equal(ids);
    expect(drawMutants(points, 2, 40).map(idOf)).not.to.deep.equal(ids);
    expect(new Set(ids.map((id) => id.split(' ').slice(0, 2).join(' '))).size).to.equal(40);
  });

  it('that survived are listed on the page with the table', () => {
    const [first, second] = pointsOf('plugins/stores/a.ts', SOURCE);
    if (!first || !second) throw new Error('the source has two mutants');
    const page =
      'Before\n<!-- mutants: written by npm run mutants -- --write -->\nformer text\n<!-- end of mutants -->\nAfter';
    const tried = [
      { point: first, end: 'caught' as const },
      { point: second, end: 'survived' as const },
    ];
    const written = withTable(page, 7, tried);
    expect(written).to.include('Seed 7.').and.include('| `plugins/stores/` | 1 | 2 |');
    expect(written).to.include('- survived: `plugins/stores/a.ts Pool.#take logic 1`').and.not.include('former text');
  });
});
