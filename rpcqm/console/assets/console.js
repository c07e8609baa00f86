"use strict";
// Pages work without this. With it, regions that are marked with data-live are replaced after a
// change, by what the same page shows then: at most once a second, and not while somebody is in them.
// Where ages are shown (data-ages), which grow by themselves, that is done every ten seconds too.
(function () {
  const address = document.body.dataset.events;
  if (!address || !document.querySelector("[data-live]")) return;
  const GONE = [403, 404];
  let source = null;
  let busy = false;
  let again = false;

  function replace(fresh) {
    for (const old of document.querySelectorAll("[data-live]")) {
      const name = CSS.escape(old.dataset.live);
      const now = fresh.querySelector(`[data-live="${name}"]`);
      const used = old.contains(document.activeElement) || old.querySelector("input:checked");
      if (now && !used && now.innerHTML !== old.innerHTML) {
        old.replaceWith(document.adoptNode(now));
      }
    }
  }

  async function refresh() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    again = false;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.redirected || GONE.includes(answer.status)) {
        location.reload();
        return;
      }
      if (answer.ok) {
        const text = await answer.text();
        replace(new DOMParser().parseFromString(text, "text/html"));
      }
    } catch (error) {
      // The queue manager is away; the events tell when it is back.
    }
    setTimeout(function () {
      busy = false;
      if (again) refresh();
    }, 1000);
  }

  function listen() {
    if (source || document.hidden) return;
    source = new EventSource(address);
    source.addEventListener("changed", refresh);
    source.addEventListener("error", function () {
      if (source && source.readyState === EventSource.CLOSED) refresh();
    });
  }

  document.addEventListener("visibilitychange", function () {
    if (document.hidden && source) {
      source.close();
      source = null;
    } else if (!document.hidden) {
      listen();
      refresh();
    }
  });
  listen();
  if (document.querySelector("[data-ages]")) {
    setInterval(function () {
      if (!document.hidden) refresh();
    }, 10000);
  }
})();
