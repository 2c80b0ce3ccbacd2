import type { NativeRow, Provider } from '../../../core/index.ts';
import type { ProviderConfig } from './options.ts';

type Native = NonNullable<Provider['native']>;

/**
 * The `native` member of a provider: the rows that say how its vendor speaks clients' dialects itself, with what the operator
 * configured under `native`. Undefined where that is switched off.
 */
export function nativeRows({ native = true }: Pick<ProviderConfig, 'native'>, rows: Native): Native | undefined {
  if (native === false) return undefined;
  if (native === true || native.references !== 'allow') return rows;
  return (model, stream) =>
    Object.fromEntries(
      Object.entries(rows(model, stream)).map(([dialect, row]) => [dialect, row && withReferences(row)]),
    );
}

function withReferences(row: NativeRow): NativeRow {
  return { ...row, references: true };
}
