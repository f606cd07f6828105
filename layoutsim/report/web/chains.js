// The chains of reasons in full: every step of both layouts of a copy, written out when its part of the page is opened.

const MOST_PRINTED_CHAINS = 20;

/** Steps from the demand to a leaf of the forest of reasons. */
function chainTo(leaf) {
  const steps = [];
  for (let i = leaf; i >= 0; i = data.steps[i][0]) steps.unshift(data.steps[i]);
  return steps;
}

function stepList(title, leaf) {
  const box = make("div");
  const list = make("ol");
  let computation = "";
  for (const [, place, where, layout, rule, by, source] of chainTo(leaf)) {
    const [name, section, because] = data.rules[rule];
    const item = make("li");
    item.append(make("code", data.texts[place]), " ", make("b", data.texts[layout], "mono"));
    if (data.texts[where] !== computation) item.append(" in ", make("code", `%${data.texts[where]}`));
    computation = data.texts[where];
    const reason = data.texts[by] ? `, by %${data.texts[by]}` : "";
    const line = data.texts[source] ? ` (${data.texts[source]})` : "";
    item.append(make("span", `${reason}: ${because} [${name}, ${section}]${line}`, "soft"));
    list.append(item);
  }
  box.append(make("b", title), list);
  return box;
}

function showSteps(group, copy) {
  const box = element(`why-${group}`).querySelector(".steps");
  const { cells, wanted, met } = data.copies[copy];
  const select = make("select");
  data.copies.forEach((other, i) => {
    if (other.group === group) select.append(make("option", `${other.cells[0]} of ${other.cells[1]}`, "", { value: i }));
  });
  select.value = copy;
  select.addEventListener("change", () => {
    showSteps(group, Number(select.value));
    box.querySelector("select").focus();
  });
  const label = make("label", "All steps of ", "wide");
  label.append(select);
  box.replaceChildren(label, stepList(`${cells[5]} is wanted`, wanted), stepList(`${cells[4]} is there`, met));
}

function openChain(group, copy) {
  element(`why-${group}`).open = true;
  showSteps(group, copy);
}

function startChains() {
  const sections = [...document.querySelectorAll("details.why")];
  sections.forEach((section, group) => {
    const fill = () => {
      const isEmpty = !section.querySelector(".steps").hasChildNodes();
      if (section.open && isEmpty) showSteps(group, data.copies.findIndex((copy) => copy.group === group));
    };
    section.addEventListener("toggle", fill);
    fill();
  });
  let opened = []; // for printing, where nothing can be clicked: the largest groups, with their pictures
  window.addEventListener("beforeprint", () => {
    opened = sections.slice(0, MOST_PRINTED_CHAINS).filter((section) => !section.open);
    for (const section of opened) section.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const section of opened) section.open = false;
  });
}

startTimeline();
startCopies();
startChains();
