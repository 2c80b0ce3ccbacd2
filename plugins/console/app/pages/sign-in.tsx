import { useState } from 'preact/hooks';
import { hasOpenId, signInByKey, signInNote } from '../api.ts';
import { Button, Code, Problem, Text } from '../ui.tsx';

/** How somebody comes in: by a link, an admin key or an OpenID provider. */
export function SignIn() {
  const [key, setKey] = useState('');
  const [error, setError] = useState<unknown>();
  const submit = (event: Event): void => {
    event.preventDefault();
    setError(undefined);
    signInByKey(key.trim()).catch(setError);
  };
  return (
    <main class="alone">
      <h1>
        <span aria-hidden="true" class="mark" /> Sign in to Tollgate
      </h1>
      {signInNote.value && <p role="status">{signInNote.value}</p>}
      {hasOpenId.value && (
        <p>
          <a class="button main" href="/api/core/admin/login?return_to=/console">
            Sign in with your organisation
          </a>
        </p>
      )}
      <section>
        <h2>By a link</h2>
        <p>On the machine of the gateway, run this and open the link that it prints. It works once, for two minutes.</p>
        <Code text="tollgate console" />
      </section>
      <section>
        <h2>With an admin key</h2>
        <form onSubmit={submit}>
          <Text
            label="Admin key"
            hint="tollgate keys create --admin --user you makes one. It is not kept in this browser."
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
    </main>
  );
}
