import { isObject, type JsonObject, type OpaquePart, readArray, readString, type Tool } from '../../../core/index.ts';
import { invalid } from '../../providers/kit/index.ts';
import { jsonSchemaOf } from './json-schema.ts';
import { checkSpelling, fieldOf, listOf, nameIn, othersOf } from './spelling.ts';
import type { ChatFields, Reading } from './types.ts';

const DECLARATION_FIELDS = ['name', 'description', 'parameters', 'parametersJsonSchema'] as const;

/** Functions as canonical tools. Whatever else a tool holds is run by Google with the operator's account. */
export function readTools(body: JsonObject, at: string, reading: Reading): ChatFields {
  const written = fieldOf(body, 'tools');
  const tools: (Tool | OpaquePart)[] = [];
  listOf(written).forEach((item, index) => {
    if (!isObject(item)) return;
    const place = Array.isArray(written) ? `${at}tools[${index}]` : `${at}tools`;
    checkSpelling(item, ['functionDeclarations'], place);
    const declarations = fieldOf(item, 'functionDeclarations');
    listOf(declarations).forEach((declaration, position) => {
      if (!isObject(declaration)) return;
      const name = `${place}.${nameIn(item, 'functionDeclarations')}`;
      const where = Array.isArray(declarations) ? `${name}[${position}]` : name;
      reading.places.push([`tools[${tools.length}]`, where]);
      tools.push(readDeclaration(declaration, where, reading));
    });
    for (const [name, value] of Object.entries(othersOf(item, ['functionDeclarations']))) {
      reading.needs.push({ kind: 'server tool', name, param: `${place}.${name}` });
      reading.places.push([`tools[${tools.length}]`, `${place}.${name}`]);
      if (/^file_?search$/i.test(name)) reading.needs.push({ kind: 'reference', name, param: `${place}.${name}` });
      tools.push({ type: 'opaque', dialect: 'gemini', value: { [name]: value } });
    }
  });
  if (tools.length === 0) return {};
  // A codec that does not know the opaque ones leaves them out.
  return { tools: tools as readonly Tool[] };
}

function readDeclaration(declaration: JsonObject, at: string, reading: Reading): Tool {
  const name = readString(declaration['name']) ?? '';
  const description = readString(declaration['description']);
  const schema = fieldOf(declaration, 'parametersJsonSchema');
  const parameters = fieldOf(declaration, 'parameters');
  if (schema !== undefined && !isObject(schema)) throw invalid(`${at}.parametersJsonSchema`, 'must be a JSON Schema');
  for (const other of Object.keys(othersOf(declaration, DECLARATION_FIELDS)))
    tellOnce(reading.dropped, `tools.functionDeclarations.${other}`);
  const own = schema ?? (isObject(parameters) ? jsonSchemaOf(parameters, `${at}.parameters`) : undefined);
  return {
    type: 'function',
    function: {
      name,
      ...(description !== undefined && { description }),
      ...(own !== undefined && { parameters: own }),
    },
  };
}

/** What the model may do with its functions. */
export function readToolConfig(body: JsonObject, at: string, reading: Reading): ChatFields {
  const config = fieldOf(body, 'toolConfig');
  if (!isObject(config)) return {};
  const name = nameIn(body, 'toolConfig');
  checkSpelling(config, ['functionCallingConfig'], `${at}${name}`);
  const calling = fieldOf(config, 'functionCallingConfig');
  if (!isObject(calling)) return {};
  const place = `${at}${name}.${nameIn(config, 'functionCallingConfig')}`;
  reading.places.push(['tool_choice', place]);
  const mode = (readString(calling['mode']) ?? 'AUTO').toUpperCase();
  const names = readArray(fieldOf(calling, 'allowedFunctionNames')).map(String);
  if (mode === 'NONE') return { tool_choice: 'none' };
  if (mode === 'VALIDATED') tellOnce(reading.dropped, 'toolConfig.functionCallingConfig.mode');
  const must = mode === 'ANY';
  const [only] = names;
  if (only === undefined) return { tool_choice: must ? 'required' : 'auto' };
  if (must && names.length === 1) return { tool_choice: { type: 'function', function: { name: only } } };
  const tools = names.map((each) => ({ type: 'function', function: { name: each } }));
  return { tool_choice: { type: 'allowed_tools', allowed_tools: { mode: must ? 'required' : 'auto', tools } } };
}

function tellOnce(dropped: string[], field: string): void {
  if (!dropped.includes(field)) dropped.push(field);
}
