import { type AgentDefinition, isObject, readArray, readString } from '../../../core/index.ts';
import { runInTime } from '../kit/agent-run.ts';
import type { KnownSource, MedicalCase, MedicalRun } from './case.ts';

const MAX_SOURCES = 6;
const MAX_TEXT = 1500;

/**
 * Passages that the agent `rag` finds for the message: its finding's `data` is a list (or `{data: […]}`) of
 * `{id, text, title, source, location}`. Without it, or when it fails, there are none.
 */
export async function findSources(
  rag: AgentDefinition | undefined,
  medicalCase: MedicalCase,
  run: MedicalRun,
): Promise<readonly KnownSource[]> {
  if (!rag?.run) return [];
  const { message } = medicalCase;
  const look = async (signal: AbortSignal) =>
    rag.run?.(Object.freeze({ instruction: message, message }), {
      principal: run.principal,
      requestId: run.requestId,
      onOutcome: run.calls.note,
      signal,
      chat: (messages, { temperature } = {}) =>
        run.calls.chat(
          { model: medicalCase.model, messages, ...(temperature !== undefined && { temperature }) },
          { signal, reserve: 8 },
        ),
      emit: () => {},
      usage: () => run.calls.usage(),
    });
  try {
    const finding = await run.trace.step('rag', () => runInTime('rag', run, run.limits.agentTimeoutMs, look));
    const data = isObject(finding?.data) ? finding.data['data'] : finding?.data;
    return readArray(data).flatMap(readSource).slice(0, MAX_SOURCES);
  } catch {
    return [];
  }
}

function readSource(value: unknown): readonly KnownSource[] {
  if (!isObject(value)) return [];
  const text = readString(value['text']);
  if (text === undefined) return [];
  const source = readString(value['source']);
  return [
    {
      id: readString(value['id']) ?? '',
      title: readString(value['title']) ?? source ?? 'Untitled',
      text: text.slice(0, MAX_TEXT),
      source,
      location: value['location'],
    },
  ];
}
