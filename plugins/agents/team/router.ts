import type { Schema } from '../../../core/index.ts';
import { isGatewayError } from '../../../core/index.ts';
import { structuredDeps } from '../kit/agent-run.ts';
import { requestStructured } from '../kit/request-structured.ts';
import type { SchemaReader } from '../kit/response-model.ts';
import { buildMessages, type TeamJob, type TeamRun, WRITER_CALLS } from './job.ts';

/** One specialist's order. */
export interface Assignment {
  readonly agent: string;
  readonly instruction: string;
}

/** How much of the inputs the router reads, in characters. */
const MAX_INPUT = 10_000;

const ORDER = `You lead a team of specialists and decide who works on the user's request.
Choose only specialists whose work changes the answer; one is often enough. Choose none for greetings, small talk and
questions that can be answered at once. Give each a short instruction that says what to find out for this request.
They work at the same time and do not see each other's results. Do not answer the request yourself.`;

/**
 * Lets the router choose which specialists are needed; in a team of one there is no choice. A response that cannot be
 * read means none: the writer then works alone. Any other error is thrown.
 */
export async function chooseAgents(job: TeamJob, run: TeamRun, reader: SchemaReader): Promise<readonly Assignment[]> {
  const { members } = run.team;
  const [only] = members;
  if (!only) return [];
  if (members.length === 1) return [{ agent: only.name, instruction: job.message }];
  const roster = members.map(({ name, when }) => `- ${name}: ${when}`).join('\n');
  const actions = job.actions && `The result may use these actions: ${job.actions.names.join(', ')}.`;
  const images = job.inputs.images.length > 0 && `There are ${job.inputs.images.length} images; specialists see them.`;
  const checked = reader.readSchema(choiceSchema(members.map(({ name }) => name)), 'router');
  const request = {
    model: run.router.model ?? job.model,
    maxTokens: run.router.maxTokens,
    messages: buildMessages(briefly(job), {
      order: [ORDER, `Specialists:\n${roster}`, actions, images || undefined],
      memory: true,
      images: false,
    }),
  };
  const deps = structuredDeps(run, run.signal, WRITER_CALLS);
  try {
    const { value } = await run.trace.step('router', () =>
      requestStructured(request, { name: 'assignments', ...checked }, deps),
    );
    return withoutTwins((value as { readonly agents: readonly Assignment[] }).agents);
  } catch (error) {
    if (isGatewayError(error) && error.code === 'provider_invalid_response') return [];
    throw error;
  }
}

/** Choosing does not take all of the inputs. */
function briefly(job: TeamJob): TeamJob {
  const { text } = job.inputs;
  return text.length <= MAX_INPUT ? job : { ...job, inputs: { ...job.inputs, text: `${text.slice(0, MAX_INPUT)} …` } };
}

function choiceSchema(names: readonly string[]): Schema {
  return {
    type: 'object',
    properties: {
      agents: {
        type: 'array',
        maxItems: names.length,
        items: {
          type: 'object',
          properties: { agent: { type: 'string', enum: names }, instruction: { type: 'string' } },
          required: ['agent', 'instruction'],
          additionalProperties: false,
        },
      },
    },
    required: ['agents'],
    additionalProperties: false,
  };
}

function withoutTwins(assignments: readonly Assignment[]): readonly Assignment[] {
  return [...new Map(assignments.map((one) => [one.agent, one])).values()];
}
