// gua serve: what a page gains where scripts run. The page Now is fetched again every few seconds and its
// content replaced; commands get a button that copies them; "print" prints. Pages are whole without this.
"use strict";

const EVERY_MS = 5000;
const live = document.getElementById("live");

// Commands that can be copied. The clipboard is there on https and on localhost only.
function addButtons(within) {
	if (!navigator.clipboard)
		return;
	for (const code of within.querySelectorAll("code.copy")) {
		const button = document.createElement("button");
		button.type = "button";
		button.className = "copies";
		button.textContent = "copy";
		button.setAttribute("aria-label", "copy " + code.textContent);
		button.addEventListener("click", () => {
			navigator.clipboard.writeText(code.textContent).then(
				() => { button.textContent = "copied"; },
				() => { button.textContent = "not allowed"; });
		});
		code.after(button);
	}
}

// Where the focus is, in words that still hold when the content was replaced.
function focusIn(within) {
	const element = document.activeElement;
	if (!element || !within.contains(element))
		return null;
	const same = [...within.querySelectorAll("a, button, [tabindex]")];
	return { id: element.id, href: element.getAttribute("href"), label: element.getAttribute("aria-label"),
		place: same.indexOf(element) };
}

function focusAgain(within, was) {
	if (!was)
		return;
	const all = [...within.querySelectorAll("a, button, [tabindex]")];
	const element = (was.id && document.getElementById(was.id)) ||
		all.find((one) => was.label && one.getAttribute("aria-label") === was.label) ||
		all.find((one) => was.href && one.getAttribute("href") === was.href) || all[was.place];
	if (element)
		element.focus({ preventScroll: true });
}

function show(fresh) {
	const was = focusIn(live);
	const wide = [...live.querySelectorAll(".wide")].map((one) => one.scrollLeft);
	live.replaceChildren(...fresh.childNodes);
	addButtons(live);
	live.querySelectorAll(".wide").forEach((one, i) => { one.scrollLeft = wide[i] || 0; });
	focusAgain(live, was);
}

// Says that what is shown is old; "" when it is not.
function say(text) {
	let notice = document.getElementById("old");
	if (!notice) {
		notice = document.createElement("p");
		notice.id = "old";
		notice.className = "warning";
		notice.setAttribute("role", "status");
		live.before(notice);
	}
	notice.hidden = !text;
	if (notice.textContent !== text)
		notice.textContent = text;
}

let shownAt = new Date();
let timer = 0;

async function refresh() {
	try {
		const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(10000) });
		const text = await answer.text();
		const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("live");
		if (!answer.ok || !fresh)
			throw new Error("the server answers " + answer.status);
		// Not while somebody selects text in it.
		if (getSelection().isCollapsed || !live.contains(getSelection().anchorNode))
			show(fresh);
		shownAt = new Date();
		say("");
	} catch (error) {
		say("This page is from " + shownAt.toLocaleTimeString() + ": " + error.message + ". It tries again.");
	}
	plan();
}

function plan() {
	clearTimeout(timer);
	if (!document.hidden)
		timer = setTimeout(refresh, EVERY_MS);
}

addButtons(document);
if (live) {
	document.addEventListener("visibilitychange", () => document.hidden ? plan() : refresh());
	plan();
}
for (const link of document.querySelectorAll(".formats a"))
	if (link.textContent === "print")
		link.addEventListener("click", (event) => { event.preventDefault(); print(); });
