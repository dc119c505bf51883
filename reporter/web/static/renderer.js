/*
 * Which renderer draws the map: our own Canvas2D, or sigma where `make web` has built it and WebGL is real.
 *
 * A software WebGL (SwiftShader, llvmpipe) is slower than Canvas2D, so it does not count. ?renderer=canvas or
 * ?renderer=sigma in the address decides by hand.
 */

import { createCanvasMap } from "/static/canvas_map.js";

const SOFTWARE = /swiftshader|llvmpipe|software|basic render/i;

export function hasRealWebGL() {
  const context = document.createElement("canvas").getContext("webgl2");
  if (!context) return false;
  const named = context.getExtension("WEBGL_debug_renderer_info");
  const name = String(context.getParameter(named ? named.UNMASKED_RENDERER_WEBGL : context.RENDERER));
  context.getExtension("WEBGL_lose_context")?.loseContext();
  return !SOFTWARE.test(name);
}

export async function pickRenderer() {
  const asked = new URLSearchParams(location.search).get("renderer");
  const isBuilt = document.body.dataset.built === "yes";
  if (asked === "canvas" || !isBuilt || (asked !== "sigma" && !hasRealWebGL())) return createCanvasMap;
  const { createSigmaMap } = await import("/static/built/sigma_map.js");
  return createSigmaMap;
}
