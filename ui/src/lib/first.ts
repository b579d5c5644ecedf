// What the first view needs is asked for before all other scripts run.

import { begin, hasToken, takeToken } from "./api";

takeToken();
/** True if the page opens with the view of links. */
export const isBuild = /^#?(\/build)?$/.test(location.hash);
if (hasToken()) {
  begin("/api/about");
  if (isBuild) begin("/api/schema");
}
