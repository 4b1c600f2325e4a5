/**
 * Layers of a model, one after the other through a few slots of GPU memory: while one is used, the
 * next ones are read. In: byte ranges of one storage or several, and CUDA streams. Out: the places
 * of layers in files.
 */
@NullMarked
package io.gpunvme.storage.layer;

import org.jspecify.annotations.NullMarked;
