import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { type JsonObject, readArray, readObject, readString } from '../../contract/index.ts';
import { abilityOf, coversTool, toolRulesOf } from '../../contract/server-tools.ts';

/** Abilities and tools of the table in docs/security.md. */
function readTable(): readonly (readonly [ability: string, tools: readonly string[]])[] {
  const page = readFileSync(path.join(PACKAGE_ROOT, 'docs/security.md'), 'utf8');
  const [, section = ''] = /### Tools of vendors\n([\s\S]*?)\n## /.exec(page) ?? [];
  return [...section.matchAll(/^\| `(\w+)` \| (.+) \|$/gm)].map(([, ability = '', tools = '']) => [
    ability,
    Array.from(tools.matchAll(/`([^`]+)`/g), ([, name = '']) => name),
  ]);
}

const TABLE = readTable();
const ABILITIES = TABLE.map(([ability]) => ability);

describe('G22: permissions for tools of vendors', () => {
  it('G22: are the abilities of docs/security.md', () => {
    expect(ABILITIES).to.deep.equal(['search', 'fetch', 'code', 'files', 'images', 'models', 'mcp', 'computer']);
  });

  for (const [ability, tools] of TABLE)
    it(`G22: \`${ability}\` allows its tools in every spelling and version, and no other ability does`, () => {
      for (const tool of tools)
        for (const spelling of [
          tool,
          `${tool}_20250305`,
          `${tool}_preview`,
          `${tool}_preview_2025_03_11`,
          `${tool}-2025-03-11`,
        ])
          expect(
            ABILITIES.filter((other) => toolRulesOf([other])(spelling)),
            spelling,
          ).to.deep.equal([ability]);
    });

  /** Tools that only their own name allows: each reaches what one account alone has. */
  const BY_NAME = new Set(['builtin_function', 'namespace']);

  it('G22: are abilities for each type of tool that the vendors’ pages describe', () => {
    const folder = path.join(PACKAGE_ROOT, 'test/fixtures/effects');
    const tools = readdirSync(folder).flatMap((file) => {
      const { rows } = JSON.parse(readFileSync(path.join(folder, file), 'utf8')) as { rows: readonly JsonObject[] };
      return rows
        .filter(({ field, effect }) => field === 'tools' && effect === 'tool')
        .flatMap(({ value }) => readArray(value).map(readObject))
        .map((tool) => readString(tool['type']) ?? Object.keys(tool)[0] ?? '');
    });
    expect(tools).to.include.members(['image_generation', 'googleMaps', 'advisor_20260301', 'retrieval', 'shell']);
    expect(tools.filter((tool) => !BY_NAME.has(tool) && abilityOf(tool) === undefined)).to.deep.equal([]);
  });

  it('G22: a name allows one tool, in both cases and all versions', () => {
    const mayUse = toolRulesOf(['web_search', 'googleSearch', 'web_search_preview']);
    for (const tool of [
      'web_search',
      'web_search_20250305',
      'web_search_preview_2025_03_11',
      'googleSearch',
      'google_search',
    ])
      expect(mayUse(tool), tool).to.equal(true);
    for (const tool of ['google_search_retrieval', 'x_search', 'web_fetch', 'search', 'web_searcher', 'constructor'])
      expect(mayUse(tool), tool).to.equal(false);
    expect(toolRulesOf(['web_search_20250305'])('web_search_20260101'), 'another version').to.equal(false);
  });

  it('G22: tools that search among the caller’s own tools need none', () => {
    for (const tool of ['tool_search_tool_regex', 'tool_search_tool_regex_20251119', 'tool_search_tool_bm25'])
      expect(toolRulesOf()(tool), tool).to.equal(true);
    for (const tool of [...ABILITIES, 'web_search', 'tool_search_tool', 'data_sources'])
      expect(toolRulesOf()(tool), tool).to.equal(false);
  });

  it('G22: an ability includes its tools, and no tool includes an ability', () => {
    const pairs = [
      ...[
        ['search', 'search'],
        ['search', 'googleSearch'],
        ['web_search', 'web_search_20250305'],
        ['mcp', 'mcp_toolset'],
      ],
      ...[
        ['web_search', 'search'],
        ['web_search_20250305', 'web_search'],
        ['mcp_toolset', 'mcp'],
        ['computer_use', 'computer'],
      ],
    ] as const;
    expect(pairs.map(([permission = '', other = '']) => coversTool(permission, other))).to.deep.equal([
      ...[true, true, true, true],
      ...[false, false, false, false],
    ]);
  });
});
