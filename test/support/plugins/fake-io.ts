import { formatTable } from '../../../cli/io.ts';
import type { CommandIo } from '../../../contract/index.ts';

/** The channels of a command that no terminal is behind; what a test looks at is given by it. */
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
