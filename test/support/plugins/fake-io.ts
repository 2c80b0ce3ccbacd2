import { formatTable } from '../../../cli/io.ts';
import type { CommandIo } from '../../../contract/index.ts';

/** Channels of a command without a terminal; tests pass the ones that they inspect. */
export function fakeIo(parts: Partial<CommandIo> = {}): CommandIo {
  return {
    json: false,
    isTerminal: false,
    result: () => undefined,
    table: formatTable,
    note: () => undefined,
    write: () => undefined,
    read: async () => '',
    ...parts,
  };
}
