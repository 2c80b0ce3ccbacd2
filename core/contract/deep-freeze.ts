/**
 * Freezes a value of plain data with everything in it, and returns it. What is frozen already is taken to be frozen deeply, so
 * a value that is passed on twice costs one look. Only objects and arrays: bytes, streams and what else has a class of its own
 * stay as they are.
 */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value) || !isPlain(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) deepFreeze(member);
  return value;
}

function isPlain(value: object): boolean {
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
