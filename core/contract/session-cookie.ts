/**
 * The name of the cookie that holds the session of a person who signed in, as the OpenAPI document tells it. Over https it has the
 * prefix `__Host-`: no other host can set it.
 */
export const SESSION_COOKIE = 'tollgate-session';
