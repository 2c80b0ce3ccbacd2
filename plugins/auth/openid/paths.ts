/** Prefix of the paths for which a session is a credential. */
export const ADMIN_PREFIX = '/api/core/admin/';
export const LOGIN_PATH = '/api/core/admin/login';
export const CALLBACK_PATH = '/api/core/admin/callback';
export const LOGOUT_PATH = '/api/core/admin/logout';
export const SESSION_PATH = '/api/core/admin/session';

const MAX_LENGTH = 1000;
/** Printable ASCII without a backslash, which browsers treat like a slash. */
const PLAIN = /^\/[\x21-\x5b\x5d-\x7e]*$/;

/**
 * True for a path of this gateway to which a browser may be sent after signing in. It has no scheme, no host, and
 * nothing that a browser would read as one.
 */
export function isOwnPath(text: string): boolean {
  if (text.length > MAX_LENGTH || !PLAIN.test(text)) return false;
  const [path = ''] = text.split(/[?#]/, 1);
  // A return to these paths would loop forever.
  const isSignIn = [LOGIN_PATH, CALLBACK_PATH].includes(path.toLowerCase().replace(/\/$/, ''));
  return !path.includes('//') && !path.split('/').some((part) => /^(\.|%2e){1,2}$/i.test(part)) && !isSignIn;
}
