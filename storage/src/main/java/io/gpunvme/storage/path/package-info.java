/**
 * The ways bytes travel between a source and an accelerator's memory: what they have in common, and
 * one package each for those that read files. A path moves ranges, tells what it counted and what
 * it expects of itself; it knows nothing of the other paths. Which one is used is decided in {@code
 * io.gpunvme.storage}.
 */
@NullMarked
package io.gpunvme.storage.path;

import org.jspecify.annotations.NullMarked;
