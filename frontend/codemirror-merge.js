// The view of two texts side by side, for the pages that compare and merge; all it stands on comes from
// codemirror.js.
export { getChunks, goToNextChunk, goToPreviousChunk, MergeView } from "@codemirror/merge";
