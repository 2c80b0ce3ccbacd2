import type { MutatedFile } from './mutants.ts';

const room = 'what vendors do';
const BILLS = ['test/app/vendor-bills.test.ts'];

/** One wrong line for each of E1 to E24, in place of its fix. */
export const BILL: readonly MutatedFile[] = [
  {
    ...{ room, file: 'core/calls/ingress.ts', tests: ['test/ingress/vendor-effects.test.ts'] },
    mutants: [
      [
        'E1: a key without tools uses a vendor’s tools by a field',
        'const beyondPlan = beyondKey.filter((tool) => !isToolAllowed(plan?.plan.serverTools, tool));',
        'const beyondPlan = beyondKey.slice(beyondKey.length).filter((tool) => !isToolAllowed(plan?.plan.serverTools, tool));',
      ],
      [
        'E11: a condition is dropped',
        'if (CONDITIONS.get(field)?.test(',
        "if (CONDITIONS.get(field + '!')?.test(",
        ['test/ingress/conditions.test.ts'],
      ],
    ],
  },
  {
    ...{
      room,
      file: 'contract/facts.ts',
      tests: ['test/ingress/responses-native.test.ts', 'test/contract/facts.test.ts'],
    },
    mutants: [
      [
        'E2: what acts deep in a body is not found',
        'this.#notes.needs.push({ ...effect, param: toParam(place, at) });',
        'if (effect === undefined) this.#notes.needs.push({ ...effect, param: toParam(place, at) });',
      ],
    ],
  },
  {
    ...{ room, file: 'contract/prices.ts', tests: BILLS },
    mutants: [
      ['E3: the tier that served is charged as the list price', ': base?.services.get(tier);', ': base;'],
      ['E4: searches cost nothing', 'const quantity = units[unit] ?? 0;', 'const quantity = 0;'],
      [
        'E5: sound and images are charged as text',
        'if (read?.audio_tokens || read?.image_tokens || wrote?.audio_tokens || wrote?.image_tokens)',
        'if (read?.audio_tokens === -1)',
      ],
    ],
  },
  {
    ...{ room, file: 'plugins/formats/anthropic/usage.ts', tests: BILLS },
    mutants: [
      [
        'E6: a fallback is charged as the model that was asked for',
        'const byModel = isRefused ? [] : sharesOf(iterations, model);',
        'const byModel = isRefused ? [] : sharesOf([], model);',
      ],
    ],
  },
  {
    ...{ room, file: 'core/calls/meter.ts', tests: BILLS },
    mutants: [
      [
        'E7: usage of zeros is free',
        '(told.prompt_tokens > 0 && told.completion_tokens > 0)',
        '(told.prompt_tokens >= 0 && told.completion_tokens >= 0)',
      ],
      [
        'E8: several responses for one are reserved as one',
        "  { kind: 'factor', name: 'best_of' },\n  { kind: 'factor', name: 'num_return_sequences' },\n",
        '',
      ],
    ],
  },
  {
    ...{ room, file: 'plugins/policies/accounts/charges.ts', tests: ['test/app/small-budgets.test.ts'] },
    mutants: [
      [
        'E9: nobody’s limit is lowered to what is left',
        'api.books.limitOutput(call, tokens);',
        '',
        ['test/app/lowered-limits.test.ts', 'test/app/small-budgets.test.ts'],
      ],
    ],
  },
  {
    ...{ room, file: 'contract/units.ts', tests: ['test/app/metering.test.ts', ...BILLS] },
    mutants: [
      [
        'E10: each call is rounded up to a micro-dollar',
        'return Math.min(Math.ceil(pico / 1000), MAX_COST);',
        'return Math.min(Math.ceil(pico / 1_000_000) * 1000, MAX_COST);',
      ],
    ],
  },
  {
    ...{ room, file: 'core/calls/own-token.ts', tests: ['test/app/credential-places.test.ts'] },
    mutants: [
      [
        'E12: a caller’s own token beside a key is thrown away in silence',
        'if (token === undefined) return;',
        'if (token !== null) return;',
      ],
    ],
  },
  {
    ...{ room, file: 'plugins/formats/openai-chat/models.ts', tests: ['test/ingress/openai-wires.test.ts'] },
    mutants: [
      [
        'E13: tools with reasoning go by chat completions',
        'return isGreatest || (hasTools(request) && !isChatEnough(request));',
        'return isGreatest;',
      ],
      [
        'E14: a model that no row knows gets stop words',
        "  stop: drop(),\n  verbosity: drop(undefined, 'medium'),",
        "  verbosity: drop(undefined, 'medium'),",
        ['test/plugins/providers/openai.test.ts'],
      ],
      [
        'E22: a page of docs/providers says what no longer arrives',
        'const NO_PENALTIES: CompatibleRules = {\n  frequency_penalty: drop(undefined, 0),',
        'const NO_PENALTIES: CompatibleRules = {',
        ['test/docs/provider-pages.test.ts'],
      ],
    ],
  },
  {
    ...{ room, file: 'plugins/formats/kit/efforts.ts', tests: ['test/plugins/formats/google.test.ts'] },
    mutants: [['E15: the greatest effort thinks least', 'xhigh: 32_768, max: 32_768 }', 'xhigh: 32_768, max: 1024 }']],
  },
  {
    ...{
      room,
      file: 'contract/model-ends.ts',
      tests: ['test/app/model-lists.test.ts', 'test/models/model-catalog.test.ts'],
    },
    mutants: [
      [
        'E16: models that are shut down are listed',
        'Number.POSITIVE_INFINITY) <= Date.now();',
        'Number.POSITIVE_INFINITY) <= 0;',
      ],
    ],
  },
  {
    ...{ room, file: 'contract/price-rows.ts', tests: ['test/app/price-times.test.ts'] },
    mutants: [['E17: the first row of a price holds for ever', 'if (at < from || at >= until ||', 'if (at < 0 ||']],
  },
  {
    ...{ room, file: 'plugins/formats/anthropic/write-request.ts', tests: ['test/exchanges/exchanges.test.ts'] },
    mutants: [
      [
        'E18: thinking is bound to a prefix that a client may change',
        "return { ...thinking, block_binding: { prefix_mismatch_behavior: 'drop_block' } };",
        'return thinking;',
      ],
    ],
  },
  {
    ...{ room, file: 'plugins/formats/openai-chat/response.ts', tests: ['test/app/local-servers.test.ts'] },
    mutants: [
      [
        'E19: an unknown end is a good one',
        'const meaning = own ?? (Object.hasOwn(FINISH_REASON, key) ? FINISH_REASON[key] : undefined);',
        "const meaning = own ?? (Object.hasOwn(FINISH_REASON, key) ? FINISH_REASON[key] : 'stop');",
        ['test/plugins/formats/openai-chat/finish-reasons.test.ts'],
      ],
      [
        'E21: citations of a form of ours reach a client',
        "if (type !== 'opaque' && type !== 'file_citation') return [annotation];",
        'if (type !== null) return [annotation];',
        ['test/app/citations.test.ts'],
      ],
    ],
  },
  {
    ...{
      room,
      file: 'plugins/formats/anthropic/thinking.ts',
      tests: ['test/plugins/dialects/messages/native.test.ts'],
    },
    mutants: [
      [
        'E20: thinking goes to models that refuse it',
        'if (takesThinking(own, traits)) return',
        'if (takesThinking(own, traits) || own !== null) return',
      ],
    ],
  },
  {
    ...{ room, file: 'plugins/agents/rag/retrieve.ts', tests: ['test/plugins/agents/rag/languages.test.ts'] },
    mutants: [
      [
        'E23: half a word that stands nowhere finds passages',
        'return found.length === 0 ? [] : withFallingScores(',
        'return withFallingScores(',
      ],
    ],
  },
  {
    ...{ room, file: 'plugins/agents/medical/engine/grammar.ts', tests: ['test/plugins/agents/medical/rules.test.ts'] },
    mutants: [
      [
        'E24: what relatives died of is an emergency',
        'if (ofFamily?.has(own) || (many?.has(own) && FAMILY_ILLNESSES.has(concept))) return true;',
        '',
      ],
    ],
  },
];
