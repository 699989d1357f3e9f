/** Loads the page again if it did not arrive whole, as when a phone has just joined the
 * Wi-Fi. A classic script: a module that fails takes the others with it. */
addEventListener('error', ({target}) => {
  const needed = target instanceof HTMLScriptElement ||
    (target instanceof HTMLLinkElement && target.rel === 'stylesheet');
  const again = () => fetch(location.href).then(
    () => location.reload(),
    () => setTimeout(again, 1000),  // reloaded now, it would be the browser's error page
  );
  if (needed) setTimeout(again, 1000);
}, true);
