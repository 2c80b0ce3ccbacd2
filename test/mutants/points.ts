import { type ESTree, parseAst } from 'vite';

/** Kind of change. Each is one small mistake that a programmer makes. */
export type MutantKind = 'negate' | 'boundary' | 'equality' | 'logic' | 'default' | 'arithmetic' | 'remove' | 'return';

/** Possible mutant: one change of one kind in one function. */
export interface MutantPoint {
  readonly file: string;
  /** Name of the enclosing function, with its class: `Failover.nextTarget`, `Failover.#take`, `createId`. */
  readonly function: string;
  readonly kind: MutantKind;
  /** Position among the changes of this kind in this function, from 1. */
  readonly number: number;
  /** Range of the replaced text in the file, in UTF-16 code units. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

/** Returns the id of a mutant, which stays valid while the rest of its file changes. */
export function idOf({ file, function: name, kind, number }: MutantPoint): string {
  return `${file} ${name} ${kind} ${number}`;
}

/** Returns the text of a file with its mutant. */
export function mutate(text: string, { start, end, replacement }: MutantPoint): string {
  return text.slice(0, start) + replacement + text.slice(end);
}

type Node = ESTree.Node;

/** Change of a node: the range and its replacement. */
interface Change extends Pick<MutantPoint, 'kind' | 'start' | 'end' | 'replacement'> {}

const BOUNDARY: Readonly<Record<string, string>> = Object.freeze({ '<': '<=', '<=': '<', '>': '>=', '>=': '>' });
const EQUALITY: Readonly<Record<string, string>> = Object.freeze({ '===': '!==', '!==': '===' });
const ARITHMETIC: Readonly<Record<string, string>> = Object.freeze({ '-': '+', '*': '/', '/': '*' });

/** Returns all changes of a TypeScript file that are possible inside its functions. */
export function pointsOf(file: string, text: string): readonly MutantPoint[] {
  const points: MutantPoint[] = [];
  const counts = new Map<string, number>();
  const visit = (node: Node, name: string | undefined, owner: string | undefined): void => {
    if (name !== undefined)
      for (const change of changesOf(node, text)) {
        const key = `${name} ${change.kind}`;
        const number = (counts.get(key) ?? 0) + 1;
        counts.set(key, number);
        points.push({ file, function: name, number, ...change });
      }
    const isClass = node.type === 'ClassDeclaration' || node.type === 'ClassExpression';
    const inner = isClass ? node.id?.name : owner;
    const own = name ?? functionName(node, inner);
    for (const child of childrenOf(node)) visit(child, own, inner);
  };
  visit(parseAst(text, { lang: 'ts' }) as Node, undefined, undefined);
  return points;
}

/** Returns the name of a named function outside of other functions; callbacks inside belong to it. */
function functionName(node: Node, owner: string | undefined): string | undefined {
  if (node.type === 'FunctionDeclaration') return node.id?.name;
  if (node.type === 'MethodDefinition' || node.type === 'PropertyDefinition')
    return isFunction(node.value) ? `${owner === undefined ? '' : `${owner}.`}${keyName(node.key)}` : undefined;
  if (node.type === 'Property') return isFunction(node.value) ? keyName(node.key) : undefined;
  if (node.type === 'VariableDeclarator' && isFunction(node.init) && node.id.type === 'Identifier') return node.id.name;
  return undefined;
}

function isFunction(node: Node | null | undefined): boolean {
  return node?.type === 'FunctionExpression' || node?.type === 'ArrowFunctionExpression';
}

function keyName(key: Node): string {
  if (key.type === 'PrivateIdentifier') return `#${key.name}`;
  if (key.type === 'Identifier') return key.name;
  return key.type === 'Literal' ? String(key.value) : '(computed)';
}

/** Returns the child nodes that run; types are skipped. */
function childrenOf(node: Node): readonly Node[] {
  return Object.values(node)
    .flat()
    .filter((value): value is Node => typeof value === 'object' && value !== null && 'type' in value)
    .filter(
      ({ type }) => !type.startsWith('TS') || /^TS(?:AsExpression|SatisfiesExpression|NonNullExpression)$/.test(type),
    );
}

function changesOf(node: Node, text: string): readonly Change[] {
  const { start, end } = node;
  const source = (part: Node): string => text.slice(part.start, part.end);
  switch (node.type) {
    case 'IfStatement':
    case 'ConditionalExpression': {
      const { test } = node;
      return [{ kind: 'negate', start: test.start, end: test.end, replacement: `!(${source(test)})` }];
    }
    case 'LogicalExpression': {
      const { left, right, operator } = node;
      if (operator === '??') return [{ kind: 'default', start, end, replacement: `(${source(right)})` }];
      return swapOperator('logic', text, { left, right, operator }, operator === '&&' ? '||' : '&&');
    }
    case 'BinaryExpression': {
      const { operator } = node;
      if (operator in BOUNDARY) return swapOperator('boundary', text, node, BOUNDARY[operator]);
      if (operator in EQUALITY) return swapOperator('equality', text, node, EQUALITY[operator]);
      // An addition may join texts, whose difference would be NaN: every test would notice it.
      return swapOperator('arithmetic', text, node, ARITHMETIC[operator]);
    }
    case 'ExpressionStatement':
      if (!/^(?:Call|Assignment|Await|Update)Expression$/.test(node.expression.type)) return [];
      return [{ kind: 'remove', start, end, replacement: ';' }];
    case 'ReturnStatement':
      return node.argument ? [{ kind: 'return', start, end, replacement: 'return undefined;' }] : [];
    default:
      return [];
  }
}

/** Replaces an operator by another one; none if there is no other. */
function swapOperator(
  kind: MutantKind,
  text: string,
  { left, right, operator }: { readonly left: Node; readonly right: Node; readonly operator: string },
  other: string | undefined,
): readonly Change[] {
  const start = text.indexOf(operator, left.end);
  if (other === undefined || start < 0 || start >= right.start) return [];
  return [{ kind, start, end: start + operator.length, replacement: other }];
}
