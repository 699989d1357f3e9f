/** Loads the page again if it did not arrive whole, as when a phone has just joined the
 * Wi-Fi. A classic script, and a part of the page itself: a request can fail, and a module that
 * fails takes the others with it. */
const reload = () => fetch(location.href).then(
  () => location.reload(),
  () => setTimeout(reload, 1000),  // reloaded now, it would be the browser's error page
);
addEventListener('error', function lost({target}) {
  if (!(target instanceof HTMLScriptElement || (target instanceof HTMLLinkElement && target.rel === 'stylesheet'))) return;
  removeEventListener('error', lost, true);
  setTimeout(reload, 1000);
}, true);

/** The browser's install prompt; app.js offers it later. */
addEventListener('beforeinstallprompt', (event) => Object.assign(window, {installing: event}));

/** Pushes of buttons that come before the module that listens to them, each once. @type {Set<HTMLElement>} */
const early = new Set();
/** @param {Event} event */
const remember = ({target}) => {
  const pushed = target instanceof Element ? target.closest('button') : null;
  if (pushed) early.add(pushed);
};
addEventListener('click', remember);

/** Chooses the language of a page that has words in lang/, and starts it behind them. */
{
  const {part} = /** @type {HTMLScriptElement} */ (document.currentScript).dataset;
  const known = ['en', 'de', 'fi', 'es', 'fr', 'zh'];
  let preferred = navigator.languages ?? [];
  try {
    preferred = [localStorage.getItem('fpvcar.language') ?? '', ...preferred];
  } catch {
    // Storage is switched off.
  }
  const language = preferred.map((tag) => tag.split('-')[0]).find((name) => known.includes(name)) ?? 'en';
  const whole = new Promise((resolve) => addEventListener('DOMContentLoaded', resolve));
  if (part) {
    document.documentElement.lang = language;
    const texts = [...new Set(['en', language])].map(async (tag) => {
      const file = await fetch(`lang/${tag}/${part}.json`);
      return file.status === 404 && tag !== 'en' ? {} : file.json();  // a translation may lack a file
    });
    Promise.all(texts).then(async (words) => {
      Object.assign(window, {words});
      await whole;
      const script = Object.assign(document.createElement('script'), {type: 'module', src: `${part}/main.js`});
      script.addEventListener('load', () => {
        removeEventListener('click', remember);
        for (const pushed of early) pushed.click();
      });
      document.head.appendChild(script);
    }, () => setTimeout(reload, 1000));
  }
}
