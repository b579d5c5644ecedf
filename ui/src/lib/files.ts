// Names of files in the workspace.

/** The file that a scenario names, by its name in the workspace. */
export function beside(file: string, scenario: string | null): string {
  if (file.startsWith("/") || !scenario) return file;
  const steps: string[] = scenario.split("/").slice(0, -1);
  for (const step of file.split("/")) {
    if (step === ".." && steps.length && steps.at(-1) !== "..") steps.pop();
    else if (step !== ".") steps.push(step);
  }
  return steps.join("/");
}
