import { type ChatMessage, type ContentPart, isObject, type JsonObject, readString } from '../../../core/index.ts';
import { createModelTurn, type ModelTurn } from './model-turn.ts';
import { contentOf, isReference, kindOf, opaquePart, partsOf, readMedia } from './read-parts.ts';
import { type FoundResponse, pairResponses } from './read-responses.ts';
import { fieldOf, listOf, nameIn } from './spelling.ts';
import type { Reading } from './types.ts';

/**
 * `contents` as canonical messages. What stands between two turns of the model is first the results of its calls, then the words of
 * the user; contents of the model in a row are one turn, because clients keep each piece of a stream as a content of its own.
 */
export function readContents(contents: unknown, base: string, first: number, reading: Reading): readonly ChatMessage[] {
  const messages: ChatMessage[] = [];
  let turn: ModelTurn | undefined;
  let run: UserRun = { responses: [], messages: [] };
  const add = (message: ChatMessage, places: readonly (readonly [string, string])[]): void => {
    const at = `messages[${first + messages.length}]`;
    for (const [canonical, caller] of places) reading.places.push([at + canonical, caller]);
    messages.push(message);
  };
  const closeUser = (): void => {
    for (const { message, places } of [...pairResponses(turn?.calls ?? [], run.responses), ...run.messages])
      add(message, places);
    run = { responses: [], messages: [] };
    turn = undefined;
  };
  const closeModel = (): void => {
    const said = turn?.message();
    if (said) add(said.message, said.places);
  };

  let isModel = false;
  for (const [index, item] of listOf(contents).entries()) {
    const content = isObject(item) ? item : {};
    const at = Array.isArray(contents) ? `${base}[${index}]` : base;
    const wasModel = isModel;
    isModel = content['role'] === 'model';
    if (isModel) {
      if (!wasModel) {
        closeUser();
        turn = createModelTurn(`call_${index}`);
      }
      turn?.add(content, at);
    } else {
      if (wasModel) closeModel();
      readUser(content, at, run, reading);
    }
  }
  if (isModel) closeModel();
  else closeUser();
  return messages;
}

/** What stands between two turns of the model. */
interface UserRun {
  readonly responses: FoundResponse[];
  readonly messages: Placed[];
}

interface Placed {
  readonly message: ChatMessage;
  readonly places: readonly (readonly [string, string])[];
}

function readUser(content: JsonObject, at: string, run: UserRun, reading: Reading): void {
  const parts: ContentPart[] = [];
  const places: [string, string][] = [['', at]];
  let responses = 0;
  for (const [part, place] of partsOf(content, at)) {
    if (isReference(part))
      reading.needs.push({
        kind: 'reference',
        name: 'fileData.fileUri',
        param: `${place}.${nameIn(part, 'fileData')}`,
      });
    const response = fieldOf(part, 'functionResponse');
    if (isObject(response)) {
      run.responses.push({ response, at: `${place}.${nameIn(part, 'functionResponse')}` });
      responses += 1;
      continue;
    }
    const read = readPart(part, place);
    if (!read) continue;
    places.push([`.content[${parts.length}]`, place]);
    parts.push(read);
  }
  if (parts.length === 0 && responses > 0) return;
  run.messages.push({ message: { role: 'user', content: contentOf(parts) }, places });
}

function readPart(part: JsonObject, at: string): ContentPart | undefined {
  switch (kindOf(part)) {
    case 'text': {
      const text = readString(fieldOf(part, 'text'));
      return text === undefined ? undefined : { type: 'text', text };
    }
    case 'inlineData':
    case 'fileData':
      return readMedia(part, at);
    default:
      return Object.keys(part).length === 0 ? undefined : opaquePart(part);
  }
}
