import type { AgentDefinition, Usage } from '../../../core/index.ts';
import { BudgetSpent } from '../kit/model-calls.ts';
import type { SchemaReader } from '../kit/response-model.ts';
import { runBounded } from '../kit/run-bounded.ts';
import { StepLate, type TraceEntry } from '../kit/trace.ts';
import type { TeamJob, TeamRun } from './job.ts';
import { type Assignment, chooseAgents } from './router.ts';
import { type Order, type Report, runSpecialist } from './specialist.ts';
import { writeResult } from './writer.ts';

/** The response of `POST /api/core/agent` (spec 2.4), and how it came about. */
export interface TeamResult {
  readonly content: Readonly<Record<string, unknown>>;
  readonly usage: Usage;
  readonly model: string;
  readonly trace: readonly TraceEntry[];
}

/**
 * Router, specialists, rounds of consultation, writer. A specialist that fails or is late is noted and missed; when all
 * of them fail the first error is thrown. Aborting the run's signal ends everything.
 */
export async function runTeam(job: TeamJob, run: TeamRun, reader: SchemaReader): Promise<TeamResult> {
  const assignments = await chooseAgents(job, run, reader);
  const board = await consult(job, assignments, run, reader);
  run.signal.throwIfAborted();
  if (board.reports.size === 0 && board.firstError !== undefined) throw causeOf(board.firstError);
  const missing = [...board.missing].filter((name) => !board.reports.has(name));
  const written = await writeResult(job, [...board.reports.values()], missing, run);
  return {
    content: asContent(written.value),
    usage: run.calls.usage(),
    model: written.model,
    trace: run.trace.entries,
  };
}

interface Board {
  /** The newest report of each agent. */
  readonly reports: Map<string, Report>;
  readonly missing: Set<string>;
  firstError: unknown;
}

/** A round: every agent with an order works; one that put questions to others gets their reports and works once more in the next. */
async function consult(
  job: TeamJob,
  assignments: readonly Assignment[],
  run: TeamRun,
  reader: SchemaReader,
): Promise<Board> {
  const board: Board = { reports: new Map(), missing: new Set(), firstError: undefined };
  const agents = new Map(run.team.members.map((agent) => [agent.name, agent]));
  const assigned = new Set<string>();
  let orders = ordersFor(assignments, 1, agents, run, []);
  for (let round = 1; orders.length > 0 && !run.signal.aborted; round += 1) {
    for (const order of orders) assigned.add(keyOf(order.agent.name, order.instruction));
    const reports = await work(orders, job, board, run, reader);
    if (round >= run.limits.maxRounds) break;
    const questions = reports
      .flatMap((report) => report.needs)
      .map(({ agent, question }) => ({ agent, instruction: question }))
      .filter(({ agent, instruction }) => !assigned.has(keyOf(agent, instruction)));
    for (const { agent, instruction } of questions) assigned.add(keyOf(agent, instruction));
    const replies = await work(ordersFor(questions, round + 1, agents, run, reports), job, board, run, reader);
    if (replies.length === 0) break;
    const waiting = new Set(reports.filter(({ needs }) => needs.length > 0).map(({ agent }) => agent));
    orders = orders
      .filter(({ agent }) => waiting.has(agent.name))
      .map((order) => ({ ...order, ...limits(round + 1, order.agent, run), reports: replies, revises: true }));
  }
  return board;
}

async function work(
  orders: readonly Order[],
  job: TeamJob,
  board: Board,
  run: TeamRun,
  reader: SchemaReader,
): Promise<readonly Report[]> {
  const tasks = orders.map((order) => () => runSpecialist(order, job, run, reader));
  const outcomes = await runBounded(tasks, run.limits.maxParallel);
  const reports: Report[] = [];
  outcomes.forEach((outcome, index) => {
    const name = orders[index]?.agent.name ?? '';
    if (outcome.status === 'fulfilled') {
      reports.push(outcome.value);
      const earlier = orders[index]?.revises ? undefined : board.reports.get(name);
      board.reports.set(name, mergeReports(earlier, outcome.value));
    } else {
      board.missing.add(name);
      if (!(outcome.reason instanceof BudgetSpent)) board.firstError ??= outcome.reason;
    }
  });
  return reports;
}

function ordersFor(
  assignments: readonly Assignment[],
  round: number,
  agents: ReadonlyMap<string, AgentDefinition>,
  run: TeamRun,
  reports: readonly Report[],
): readonly Order[] {
  return assignments.flatMap(({ agent: name, instruction }) => {
    const agent = agents.get(name);
    return agent ? [{ agent, instruction, reports, ...limits(round, agent, run) }] : [];
  });
}

/** No questions in the last round: no agent would work on them. */
function limits(round: number, agent: AgentDefinition, run: TeamRun): Pick<Order, 'round' | 'mayQuestion'> {
  const others = run.team.members.filter(({ name }) => name !== agent.name).map(({ name }) => name);
  return { round, mayQuestion: round < run.limits.maxRounds ? others : [] };
}

/** An agent that worked on a question of another one keeps its own earlier findings. */
function mergeReports(earlier: Report | undefined, later: Report): Report {
  return earlier ? { ...earlier, ...later, summary: `${earlier.summary}\n${later.summary}`.slice(-16_000) } : later;
}

function keyOf(agent: string, instruction: string): string {
  return `${agent}\n${instruction}`;
}

function causeOf(error: unknown): unknown {
  return error instanceof StepLate ? error.cause : error;
}

/** `content` is an object, whatever the root of the response_model is. */
function asContent(value: unknown): Readonly<Record<string, unknown>> {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as Readonly<Record<string, unknown>>) : { value };
}
