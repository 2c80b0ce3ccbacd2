import type { Call, Target } from '../../contract/call.ts';
import type { DialectNeed } from '../../contract/dialect.ts';
import { GatewayError } from '../../contract/errors.ts';
import type { DisguisedField, MediaAddress, RequestFacts } from '../../contract/facts.ts';
import { isPublicHttps } from '../../contract/hosts.ts';
import { isObject, type JsonObject, readArray, readObject } from '../../contract/json.ts';
import { clip } from '../../contract/model-names.ts';
import { assertInPlan } from '../../contract/plans.ts';
import type { Endpoint, HttpRequest, NativeRow } from '../../contract/provider.ts';
import { toolRulesOf } from '../../contract/server-tools.ts';
import { rulesOf } from '../../models/caller-rules.ts';
import { assertAllowed } from '../../models/catalog.ts';
import type { CallDeps } from './call-deps.ts';
import { atCallersPlace } from './error-marks.ts';
import type { InboundChat } from './inbound-chat.ts';
import { effectsFor } from './routes.ts';

/**
 * Rejects features that a target does not support: those of the dialect's vendors, and references to data in the
 * operator's account there. Returns the names of optional features, which a translated request omits.
 */
export function assertNeeds({ needs }: InboundChat, provider: string, row: NativeRow | undefined): readonly string[] {
  for (const { kind, name, param, optional } of needs) {
    if (optional) continue;
    if ((kind === 'native' || kind === 'server tool') && !row)
      throw refusal(
        param,
        `\`${param}\` (${name}) is not supported by the provider "${provider}". Remove it or use another model.`,
      );
    if (kind === 'reference' && row?.references !== true)
      throw refusal(
        param,
        `\`${param}\` (${name}) refers to data in the operator's account, which all callers share. Send the content itself; operators can allow it with \`native: { references: allow }\`.`,
      );
  }
  return needs.filter(({ optional }) => optional).map(({ name }) => name);
}

function refusal(param: string, message: string): GatewayError {
  return atCallersPlace(new GatewayError('invalid_request', message, { param }));
}

/**
 * Rejects blocks, tools and fields of another dialect than the request's. Only the checks of that dialect know their
 * needs, so they would reach its vendors unchecked.
 */
export function assertOwnBlocks({ dialect }: InboundChat, { dialects }: RequestFacts): void {
  for (const [name, param] of dialects) if (name !== dialect) throw foreign(param, dialect);
}

function foreign(param: string, dialect: string): GatewayError {
  return new GatewayError(
    'invalid_request',
    `\`${param}\` is not a field of the format "${dialect}". Remove it, or use the other format.`,
    { param },
  );
}

/**
 * Checks the effects of a request against the caller's permissions: other models against its allow-list, tools that the
 * vendor runs against its key and plan. Returns the paths of optional tools that are not allowed, which the call omits.
 */
export async function assertEffects(
  { partsOf, planOf }: CallDeps,
  { principal, operation }: Pick<Call, 'principal' | 'operation'>,
  needs: readonly DialectNeed[],
  targets: readonly Target[],
): Promise<readonly string[]> {
  const { catalog } = partsOf(operation);
  for (const { kind, name: model, param } of needs)
    for (const { provider } of kind === 'model' ? targets : []) {
      assertAllowed(catalog, principal, [{ provider, model }], { param });
      assertInPlan(catalog, await planOf(principal), [{ provider, model }], { param });
    }
  const beyondKey = needs.filter((need) => need.kind === 'server tool' && !rulesOf(principal).mayUseTool(need.name));
  // The plan may need a lookup, so it is read only for tools that the key does not allow.
  if (beyondKey.length === 0) return [];
  const plan = await planOf(principal);
  const mayUseTool = toolRulesOf(plan?.plan.serverTools);
  const beyondPlan = beyondKey.filter((tool) => !mayUseTool(tool.name));
  const refused = beyondPlan.find(({ optional }) => !optional);
  if (!refused) return beyondPlan.map(({ param }) => param);
  const { name, param } = refused;
  throw atCallersPlace(
    new GatewayError(
      'permission_denied',
      `This key may not use the tool "${clip(name)}", which \`${param}\` runs with the operator's account. Remove it; operators can allow it with \`serverTools\` of a plan or key.`,
      { param },
    ),
  );
}

/**
 * Rejects a field whose name is a known one in another case: `Model`, `MAX_TOKENS`, `me\u017f\u017fages`. Some vendors'
 * parsers ignore case (Go's does, U+017F and U+212A included). Such a field would reach the vendor unchecked and
 * without a price.
 */
export function assertNoDisguisedFields(disguised: DisguisedField | undefined): void {
  if (!disguised) return;
  const { param, known } = disguised;
  throw new GatewayError('invalid_request', `\`${param}\` must be spelled \`${known}\`. Correct or remove it.`, {
    param,
  });
}

/**
 * Rejects media URLs that a vendor must not fetch: only `https:` at a public host is allowed. The gateway fetches none
 * itself; a vendor on the operator's own network would.
 */
export function assertPublicMedia(media: readonly MediaAddress[]): void {
  const refused = media.find(({ address }) => !isPublicHttps(address));
  if (!refused) return;
  const { param } = refused;
  throw new GatewayError(
    'invalid_request',
    `\`${param}\` must be a data URL, or an https URL of a public host. Other addresses are not passed on.`,
    { param },
  );
}

/**
 * Returns the effects of a request as it is sent, by the declaration of its provider. Throws for effects that no caller
 * may have.
 */
export function effectsOf(
  declared: Endpoint['effects'],
  { model, provider }: Target,
  { body }: HttpRequest,
): readonly DialectNeed[] {
  const effects = effectsFor(declared, model);
  const needs: DialectNeed[] = [];
  if (!isObject(body)) return needs;
  for (const field in effects) {
    const sent = field === 'model' ? model : body[field];
    if ((sent ?? false) === false) continue;
    for (const { does, at, values, name } of effects[field] ?? [])
      for (const value of at === undefined ? [sent] : valuesAt(sent, at.split('.'))) {
        if ((value ?? false) === false || values?.test(String(value)) === false) continue;
        if (does === 'stores') throw refuseStoredReference(field, provider);
        if (does === 'tool' || does === 'model')
          needs.push({ kind: does === 'tool' ? 'server tool' : does, name: name ?? String(value), param: field });
      }
  }
  return needs;
}

function refuseStoredReference(param: string, provider: string): GatewayError {
  return new GatewayError(
    'invalid_request',
    `\`${param}\` lets the provider "${provider}" store or use data in the operator's account. Remove it${param === 'store' ? '; operators can allow it with `store: true` for the provider' : ''}.`,
    { param },
  );
}

/** Returns the values at a path below a value, in the syntax of {@link ProviderEffect.at}. */
function valuesAt(value: unknown, [step, ...rest]: readonly string[]): readonly unknown[] {
  if (step === undefined) return [value];
  if (step === '[]') return readArray(value).flatMap((item) => valuesAt(item, rest));
  return step === '*' ? Object.keys(readObject(value)) : valuesAt(readObject(value)[step], rest);
}

/**
 * Fields that are conditions of the caller for the response, with the values that make them so. A target that would
 * drop one is not tried. All other dropped fields are wishes, and are reported.
 */
const CONDITIONS: ReadonlyMap<string, RegExp> = new Map([
  ['compliance', /./],
  ['inference_geo', /^(?!global$)/],
  ['n', /^(?!1$)/],
  ['provider', /"(?:zdr|data_collection|only|ignore|enforce_distillable_text)":/],
  ['service_tier', /^flex$/],
]);

/**
 * Returns the error for the first condition of a caller that would be dropped; undefined if only wishes are. `bodies`
 * may contain its value.
 */
export function brokenCondition(
  dropped: readonly string[],
  bodies: readonly JsonObject[],
  provider: string,
): GatewayError | undefined {
  for (const param of dropped) {
    const field = param.replace(/^extra_body\./, '');
    const value = bodies
      .flatMap((body) => [body[field], readObject(body['extra_body'])[field]])
      .find((one) => (one ?? undefined) !== undefined);
    if (CONDITIONS.get(field)?.test(typeof value === 'object' ? JSON.stringify(value) : String(value)))
      return new GatewayError(
        'invalid_request',
        `\`${param}\` is a condition for the response that "${provider}" does not support. Remove it or use another model.`,
        { param },
      );
  }
  return undefined;
}
