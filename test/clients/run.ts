/** `npm run clients [-- name…]`: installs the clients, runs them before a gateway, and writes the matrix of docs/clients.md. */
import { install } from './install.ts';
import { OPENAI_MODELS } from './openai-vendor.ts';
import {
  readBudgets,
  readMatrix,
  readModels,
  readOperations,
  readTemplates,
  readWithoutChat,
  rowOf,
  writePage,
} from './page.ts';
import {
  lanesOf,
  type Outcome,
  runClient,
  runOnBudget,
  runOnTemplate,
  runOperations,
  runToolLoop,
} from './run-client.ts';
import { canSignIn, runSignedIn } from './signed-in.ts';
import {
  CLIENTS,
  type ClientRow,
  type ClientRun,
  DEAR_MODELS,
  type DearModel,
  NODE,
  ON_BUDGET,
  ON_OPENAI,
  ON_OPERATIONS,
  ON_TEMPLATES,
  type OperationsRun,
  TEMPLATE_MODELS,
  type TemplateModel,
} from './table.ts';

const wanted = process.argv.slice(2);
const chosen = CLIENTS.filter(({ id }) => wanted.length === 0 || wanted.some((word) => id.startsWith(word)));
const failure = await install('node', [NODE]);
if (failure !== undefined) throw new Error(`${NODE} does not install: ${failure}`);

const matrix = { ...readMatrix(), ...readWithoutChat() };
const models = readModels();
const budgets = readBudgets();
const operations = readOperations();
const templates = readTemplates();
const SELF_HOSTED = Object.keys(TEMPLATE_MODELS) as readonly TemplateModel[];
const DEAR = Object.keys(DEAR_MODELS) as readonly DearModel[];
let red = 0;
for (const row of chosen) {
  const reason = await install(row.id, row.packages);
  if (reason === undefined && canSignIn(row.id)) {
    const problem = await runSignedIn(row.id);
    if (problem !== undefined) red += 1;
    console.log(
      `${problem === undefined ? 'ok  ' : 'RED '} ${row.id}, signed in by \`tollgate login\`${problem === undefined ? '' : `: ${problem}`}`,
    );
  }
  for (const run of row.runs) {
    const start = performance.now();
    const outcomes = reason === undefined ? await runOnLanes(row, run) : [];
    matrix[rowOf(run)] =
      reason === undefined ? cellsOf(run, outcomes) : { 'set-up': `not installable: ${reason.slice(0, 120)}` };
    const state = reason === undefined ? undefined : 'skip';
    printCells(`${run.title}, ${run.format}`, { cells: matrix[rowOf(run)] ?? {}, start, state });
    if (reason !== undefined) console.log(`       not installable: ${reason}`);
    else {
      if (ON_OPENAI.includes(run.title))
        models[run.title] = await runLoops(run, OPENAI_MODELS, (model) => runToolLoop(row, run, model));
      if (ON_TEMPLATES.includes(rowOf(run)))
        templates[rowOf(run)] = await runLoops(run, SELF_HOSTED, (model) => runOnTemplate(row, run, model));
      if (ON_BUDGET.includes(rowOf(run)))
        budgets[rowOf(run)] = await runLoops(run, DEAR, (model) => runOnBudget(row, run, model));
    }
  }
  for (const run of reason === undefined ? (ON_OPERATIONS[row.id] ?? []) : []) {
    const start = performance.now();
    const cells = cellsOf(run, await runOperations(row, run));
    operations[run.title] = cells;
    printCells(`${run.title}, other than chat`, { cells, start });
  }
  // After each client: a run that is stopped keeps what it found.
  writePage({ matrix, models, budgets, operations, templates });
}
console.log(
  red === 0 ? 'docs/clients.md is written; nothing fails.' : `docs/clients.md is written; ${red} cells fail.`,
);
process.exit(red === 0 ? 0 : 1);

/** Prints the result of a row, and counts its failures. */
function printCells(
  title: string,
  of: { readonly cells: Readonly<Record<string, string>>; readonly start: number; readonly state?: string | undefined },
): void {
  const all = Object.entries(of.cells);
  const failed = all.filter(([, cell]) => cell.startsWith('fails'));
  red += failed.length;
  const seconds = ((performance.now() - of.start) / 1000).toFixed(1);
  console.log(`${of.state ?? (failed.length === 0 ? 'ok  ' : 'RED ')} ${title}: ${all.length} in ${seconds} s`);
  for (const [behaviour, cell] of failed) console.log(`       ${behaviour} ${cell}`);
}

/** Runs a tool loop on each model; returns its cells by model. */
async function runLoops<Model extends string>(
  { title }: ClientRun,
  names: readonly Model[],
  runLoop: (model: Model) => Promise<string | undefined>,
): Promise<Record<string, string>> {
  const cells: Record<string, string> = {};
  for (const model of names) {
    const problem = await runLoop(model);
    cells[model] = problem === undefined ? 'works' : 'fails';
    console.log(
      `${problem === undefined ? 'ok  ' : 'RED '} ${title} on ${model}${problem === undefined ? '' : `: ${problem}`}`,
    );
    if (problem !== undefined) red += 1;
  }
  return cells;
}

/** A behaviour fails if it fails on either route. */
async function runOnLanes(row: ClientRow, run: ClientRun): Promise<readonly Outcome[]> {
  const known = run.ofClient ?? {};
  const outcomes: Outcome[] = [];
  for (const lane of lanesOf(run)) {
    for (const { behaviour, problem } of await runClient(row, run, lane)) {
      const at = outcomes.findIndex((outcome) => outcome.behaviour === behaviour);
      const reported = problem !== undefined && known[behaviour] === undefined ? `${lane}: ${problem}` : problem;
      const outcome = { behaviour, ...(reported !== undefined && { problem: reported }) };
      if (at < 0) outcomes.push(outcome);
      else if (reported !== undefined && outcomes[at]?.problem === undefined) outcomes[at] = outcome;
    }
  }
  return outcomes;
}

function cellsOf(
  { emulated = {}, refused = {}, ofClient = {} }: ClientRun | OperationsRun,
  outcomes: readonly Outcome[],
) {
  return Object.fromEntries(
    outcomes.map(({ behaviour, problem }) => [
      behaviour,
      cellOf(problem, { emulated: emulated[behaviour], refused: refused[behaviour], ofClient: ofClient[behaviour] }),
    ]),
  );
}

/** An intended refusal must occur: a client that succeeds all the same is a finding too. */
function cellOf(problem: string | undefined, known: Record<'emulated' | 'refused' | 'ofClient', string | undefined>) {
  const { emulated, refused, ofClient } = known;
  if (refused !== undefined) return problem === undefined ? 'fails: it is not refused' : `refused: ${refused}`;
  if (problem === undefined) return emulated === undefined ? 'works' : `emulated: ${emulated}`;
  if (ofClient !== undefined) return `not in the client: ${ofClient}`;
  return `fails: ${problem.replaceAll(/req_[\w-]+/g, 'req_…')}`;
}
