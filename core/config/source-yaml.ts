import {
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type YAMLError,
} from 'yaml';
import { childPointer, type Place, type Position, type Source, SourceError } from './positions.ts';

/** How often one anchor may be repeated, so that a few lines cannot become gigabytes. */
const MAX_ALIASES = 100;

type Places = Map<string, Place>;

/** Reads YAML 1.2 (with `<<` merges); throws a {@link SourceError} that names every syntax error. */
export function parseYaml(text: string): Source {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, merge: true, stringKeys: true });
  const locate = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const unquoted = document.errors.find(({ pos }) => text.startsWith('${', pos[0] - 1));
  if (unquoted) throw new SourceError([explainUnquoted(text, unquoted, locate)]);
  if (document.errors.length > 0) {
    throw new SourceError(
      document.errors.map(({ pos, message }) => ({ ...locate(pos[0]), message: sentence(message) })),
    );
  }
  const positions: Places = new Map();
  if (document.contents) collect(document.contents, '', locate, positions);
  try {
    return { value: document.toJS({ maxAliasCount: MAX_ALIASES }), positions };
  } catch (error) {
    throw new SourceError([{ line: 1, column: 1, message: sentence(error instanceof Error ? error.message : '') }]);
  }
}

/** Within `{ }` and `[ ]` YAML takes the brace of a reference without quotes for its own; what it says then helps nobody. */
function explainUnquoted(text: string, { pos }: YAMLError, locate: (offset: number) => Position) {
  const before = /[^\s,[\]{}]*$/.exec(text.slice(0, pos[0]))?.[0] ?? '';
  const after = /^\{[^}\n]*\}?[^\s,\]{}]*/.exec(text.slice(pos[0]))?.[0] ?? '';
  return {
    ...locate(pos[0] - before.length),
    message: sentence('a text with a reference stands between brackets without quotes'),
    hint: `Quote it: '${before}${after}'.`,
  };
}

function collect(node: Node, pointer: string, locate: (offset: number) => Position, places: Places): void {
  if (!places.has(pointer)) places.set(pointer, { value: locate(node.range?.[0] ?? 0) });
  if (isAlias(node)) return;
  if (isMap(node)) {
    for (const pair of node.items) {
      if (!isPair(pair) || !isScalar(pair.key)) continue;
      const child = childPointer(pointer, String(pair.key.value));
      const key = locate(pair.key.range?.[0] ?? 0);
      const value = isNode(pair.value) ? pair.value : undefined;
      places.set(child, { key, value: value?.range ? locate(value.range[0]) : key });
      if (value) collect(value, child, locate, places);
    }
  } else if (isSeq(node)) {
    node.items.forEach((item, index) => {
      if (isNode(item)) collect(item, childPointer(pointer, index), locate, places);
    });
  }
}

function sentence(message: string): string {
  return `is not valid YAML: ${message.replace(/\.$/, '')}`;
}
