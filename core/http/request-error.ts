import type { ErrorObject } from 'ajv';
import { GatewayError } from '../contract/errors.ts';

/** The 400 for the first error that Ajv found in a body or query; `param` is the field as a caller would write it. */
export function requestError(error: ErrorObject, value: unknown, where: string | undefined): GatewayError {
  if (error.instancePath === '' && error.keyword === 'type') {
    return new GatewayError(
      'invalid_request',
      value === undefined ? 'The request has no body; send a JSON object.' : 'The body must be a JSON object.',
    );
  }
  const base = toParam(error.instancePath);
  const extra = extraName(error);
  const param = extra === undefined ? base : joinName(base, extra);
  const subject = `${where ? `${where} ` : ''}"${param || 'body'}"`;
  return new GatewayError('invalid_request', `${subject} ${reason(error)}.`, param ? { param } : {});
}

/** `/messages/0/role` as `messages[0].role`. */
export function toParam(pointer: string): string {
  let param = '';
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    param = /^\d+$/.test(name) ? `${param}[${name}]` : joinName(param, name);
  }
  return param.length > 200 ? `${param.slice(0, 197)}…` : param;
}

function joinName(base: string, name: string): string {
  const short = name.length > 80 ? `${name.slice(0, 77)}…` : name;
  return base === '' ? short : `${base}.${short}`;
}

function extraName(error: ErrorObject): string | undefined {
  const { missingProperty, additionalProperty, unevaluatedProperty, propertyName } = error.params as Record<
    string,
    string | undefined
  >;
  return missingProperty ?? additionalProperty ?? unevaluatedProperty ?? propertyName;
}

function reason(error: ErrorObject): string {
  const params = error.params as Record<string, unknown>;
  switch (error.keyword) {
    case 'required':
      return 'is required';
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return 'is not a field of this request';
    case 'type':
      return `must be ${article(params['type'])}`;
    case 'enum':
      return `must be one of ${(params['allowedValues'] as unknown[]).map((allowed) => JSON.stringify(allowed)).join(', ')}`;
    case 'const':
      return `must be ${JSON.stringify(params['allowedValue'])}`;
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
      return `must be ${String(params['comparison'])} ${String(params['limit'])}`;
    case 'minLength':
      return 'must not be empty';
    case 'minItems':
      return `must have at least ${String(params['limit'])} item(s)`;
    case 'maxItems':
      return `must have at most ${String(params['limit'])} items`;
    case 'maxLength':
      return `must have at most ${String(params['limit'])} characters`;
    case 'maxProperties':
      return `must have at most ${String(params['limit'])} fields`;
    case 'pattern':
      return `must match ${String(params['pattern'])}`;
    default:
      return error.message ?? 'is not valid';
  }
}

function article(type: unknown): string {
  const names = Array.isArray(type) ? type : [type];
  return names
    .map((name) =>
      name === 'null' ? 'null' : /^[aeiou]/.test(String(name)) ? `an ${String(name)}` : `a ${String(name)}`,
    )
    .join(' or ');
}
