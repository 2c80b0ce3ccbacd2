import { readFileSync } from 'node:fs';
import path from 'node:path';
import { PACKAGE_ROOT } from '../config/package-root.ts';
import { validateValue } from '../config/validate.ts';
import type { ListedModel } from '../contract/dialect.ts';
import { readArray, type Schema } from '../contract/json.ts';
import { formatPath } from '../contract/pointers.ts';
import { problemsOfRows } from '../contract/price-rows.ts';
import { pricingOf } from '../contract/prices.ts';
import type { ModelFamily, ModelInfo, ModelTable, Offer } from '../contract/provider.ts';

/** The table of models and prices: its content, and the rows and rules of a vendor. */

let shipped: ModelTable | undefined;

/**
 * Reads `config/models.json` of this package once. Throws if the file is missing or invalid: the installation is
 * broken.
 */
export function loadModelTable(): ModelTable {
  shipped ??= JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'config', 'models.json'), 'utf8')) as ModelTable;
  return shipped;
}

/** An operator's own list is complete: the family accepts no further names. */
export function familyOf({ vendor, models }: Offer, { families = {} }: ModelTable): ModelFamily {
  const family = Object.hasOwn(families, vendor) ? families[vendor] : undefined;
  if (!family || !models) return family ?? {};
  const { accepts: _accepts, ...rest } = family;
  return rest;
}

export function rowsOf(vendor: string, { vendors }: ModelTable): readonly ModelInfo[] {
  const rows = Object.hasOwn(vendors, vendor) ? vendors[vendor] : undefined;
  if (rows === undefined) return [];
  if (typeof rows === 'string')
    return rows === vendor ? [] : rowsOf(rows, { vendors }).map(({ shutdown: _, ...row }) => row);
  return Object.entries(rows).map(([id, { source: _, priceSource: __, priceCheck: ___, ...facts }]) => ({
    id,
    ...facts,
  }));
}

const RATE = { type: 'number', minimum: 0, maximum: 1_000_000 } as const;
const TEXT_RATES = {
  input: RATE,
  output: RATE,
  cached_input: RATE,
  cache_write: RATE,
  cache_write_1h: RATE,
  audio_input: RATE,
  cached_audio_input: RATE,
  audio_output: RATE,
  image_input: RATE,
  cached_image_input: RATE,
  image_output: RATE,
};
const FEES = { type: 'object', additionalProperties: { type: 'number', minimum: 0, maximum: 1000 } } as const;
const FACTORS = {
  type: 'object',
  additionalProperties: { type: 'number', exclusiveMinimum: 0, maximum: 100 },
} as const;
const DAY = { type: 'string', anyOf: [{ format: 'date' }, { format: 'date-time' }] } as const;
const closed = (properties: object, ...required: readonly string[]) => ({
  type: 'object',
  additionalProperties: false,
  required,
  properties,
});
const ABOVE = { input_tokens_above: { type: 'integer', minimum: 1 } } as const;
const TIER = closed({ ...TEXT_RATES, ...ABOVE }, 'input_tokens_above', 'input', 'output');
const TIERS = { type: 'array', maxItems: 10, items: TIER } as const;
const SERVICE = closed({ ...TEXT_RATES, fees: FEES, regions: FACTORS, tiers: TIERS }, 'input', 'output');
const PRICE_PARTS = {
  ...TEXT_RATES,
  characters: RATE,
  seconds: RATE,
  fees: FEES,
  regions: FACTORS,
  tiers: TIERS,
  service_tiers: { type: 'object', additionalProperties: SERVICE },
};
const MODALITIES = { type: 'array', maxItems: 10, items: { type: 'string', pattern: '^[a-z_]{1,30}$' } } as const;
const TOKENS = { type: 'integer', minimum: 1, maximum: 1_000_000_000 } as const;
const FACTS = closed({
  source: { type: 'array', maxItems: 10, items: { type: 'string' } },
  priceSource: { type: 'array', maxItems: 10, items: { type: 'string' } },
  priceCheck: { enum: ['one source', 'sources differ'] },
  kind: { type: 'string' },
  contextWindow: TOKENS,
  maxOutput: TOKENS,
  maxCharacters: TOKENS,
  inputModalities: MODALITIES,
  outputModalities: MODALITIES,
  shutdown: DAY,
  price: {
    anyOf: [
      closed(PRICE_PARTS, 'input', 'output'),
      {
        type: 'array',
        minItems: 1,
        maxItems: 50,
        items: closed(
          { ...PRICE_PARTS, from: DAY, until: DAY, hours: { type: 'string', maxLength: 200 } },
          'input',
          'output',
        ),
      },
    ],
  },
});
/** Valid model names, or suffixes such as `:free`: no spaces or control characters. */
const ROWS = {
  type: 'object',
  maxProperties: 10_000,
  additionalProperties: FACTS,
  propertyNames: { pattern: '^(?!__proto__$)[:\\w~@][\\w.:/@+~-]{0,199}$' },
};
const TABLE: Schema = closed(
  {
    version: { type: 'integer', minimum: 1 },
    date: { type: 'string', format: 'date' },
    note: { type: 'string' },
    sources: { type: 'object', additionalProperties: { type: 'string' } },
    vendors: { type: 'object', maxProperties: 200, additionalProperties: { anyOf: [{ type: 'string' }, ROWS] } },
    families: {
      type: 'object',
      maxProperties: 200,
      additionalProperties: closed({
        accepts: { type: 'array', items: { type: 'string', minLength: 1 } },
        strips: { type: 'array', items: { type: 'string', minLength: 1 } },
        endings: ROWS,
        fees: FEES,
        regions: FACTORS,
      }),
    },
  },
  ...['version', 'date', 'vendors'],
);

/** Checks a table from outside of the package; returns the first few problems, one sentence each. */
export function problemsOfTable(value: unknown): readonly string[] {
  const wrong = problemsBy(TABLE, value);
  if (wrong.length > 0) return wrong;
  const { vendors } = value as ModelTable;
  return Object.entries(vendors).flatMap(([vendor, rows]) =>
    typeof rows === 'string'
      ? []
      : Object.entries(rows).flatMap(([id, { price }]) => problemsOfPrice(`${vendor}/${id}`, price)),
  );
}

/** Checks the facts in a vendor's list of models. */
export function problemsOfModels(models: readonly ModelInfo[]): readonly string[] {
  const rows = Object.fromEntries(models.map(({ id, ...facts }) => [id, facts]));
  const wrong = problemsBy(ROWS, rows);
  return wrong.length > 0 ? wrong : models.flatMap(({ id, price }) => problemsOfPrice(id, price));
}

const MOST_PROBLEMS = 3;

function problemsBy(schema: Schema, value: unknown): readonly string[] {
  const problems = validateValue(value, schema, { plugin: undefined, pointer: '', baseDir: '/', isHidden: () => true });
  return problems.slice(0, MOST_PROBLEMS).map(({ pointer, message }) => `${formatPath(pointer) || 'it'} ${message}`);
}

function problemsOfPrice(model: string, price: ModelInfo['price']): readonly string[] {
  return readArray(price).length === 0
    ? []
    : problemsOfRows(readArray(price)).map(({ message }) => `the price of ${model} ${message}`);
}

/** Model in OpenAI's format, followed by known facts under OpenRouter's field names; clients ignore unknown fields. */
export function openAiModel({
  id,
  created,
  ownedBy,
  contextWindow,
  maxOutput,
  price,
  shutdown,
  ...model
}: ListedModel) {
  const { inputModalities, outputModalities = ['text'] } = model;
  return {
    id,
    object: 'model',
    created,
    owned_by: ownedBy,
    ...(contextWindow !== undefined && { context_length: contextWindow }),
    ...(maxOutput !== undefined && { max_completion_tokens: maxOutput }),
    ...(inputModalities && {
      architecture: { input_modalities: inputModalities, output_modalities: outputModalities },
    }),
    ...(price && { pricing: pricingOf(price) }),
    ...(shutdown !== undefined && { expiration_date: shutdown }),
  };
}
