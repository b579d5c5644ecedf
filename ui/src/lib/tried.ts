// Work that may fail, with the failure told where the view shows it.

/** A function that does work; `tell` gets the message of a failure, and "" before the work. */
export function trier(tell: (failure: string) => void): (work: () => Promise<void>) => Promise<void> {
  return async (work) => {
    try {
      tell("");
      await work();
    } catch (error) {
      tell((error as Error).message);
    }
  };
}
