import { useState } from 'preact/hooks';
import { findSession, hasOpenId, hrefOf, isLost, signInByKey, signInNote } from '../api.ts';
import { Button, Code, Dialog, Problem, Text } from '../ui.tsx';

/** Page for people without a session. */
export function SignIn() {
  return (
    <main class="alone">
      <h1>
        <span aria-hidden="true" class="mark" /> Sign in to Tollgate
      </h1>
      {signInNote.value && <p role="status">{signInNote.value}</p>}
      <Ways />
    </main>
  );
}

/** Dialog after the end of a session: the page below stays as it is. */
export function SignInAgain() {
  const close = (): void => {
    isLost.value = false;
  };
  return (
    <Dialog title="Your session has ended" onClose={close}>
      <p role="status">Sign in again. What you typed stays.</p>
      <Ways />
      <Button onClick={() => void findSession()}>I signed in by a link in another tab</Button>
    </Dialog>
  );
}

/** Methods to sign in: a link, an operator’s key or an OpenID provider. */
function Ways() {
  const [key, setKey] = useState('');
  const [error, setError] = useState<unknown>();
  const submit = (event: Event): void => {
    event.preventDefault();
    setError(undefined);
    signInByKey(key.trim()).catch(setError);
  };
  return (
    <>
      {hasOpenId.value && (
        <p>
          <a class="button main" href={hrefOf('/api/core/admin/login?return_to=/console')}>
            Sign in with your organisation
          </a>
        </p>
      )}
      <section>
        <h2>By a link</h2>
        <p>On the machine of the gateway, run this and open the link that it prints. It works once, for two minutes.</p>
        <Code text="tollgate users console" />
      </section>
      <section>
        <h2>With an admin key</h2>
        <form onSubmit={submit}>
          <Text
            label="Admin key or one with a role"
            hint="tollgate keys create --user you --admin makes one, and --role viewer one that only looks. It is not kept in this browser."
            type="password"
            required
            placeholder="tg_…"
            value={key}
            onType={setKey}
          />
          <Problem error={error} />
          <Button kind="main" type="submit">
            Sign in
          </Button>
        </form>
      </section>
    </>
  );
}
