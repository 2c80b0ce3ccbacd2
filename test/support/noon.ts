/** Time zone where it is about noon: half of today is over, wherever and whenever a test runs. */
export function noonTimezone(): string {
  const behind = new Date().getUTCHours() - 12;
  return behind === 0 ? 'UTC' : `Etc/GMT${behind > 0 ? '+' : ''}${behind}`;
}
