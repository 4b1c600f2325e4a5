/**
 * Layers of a model, one after the other through a few slots of GPU memory: while one is used, the
 * next ones travel. It knows byte ranges of a storage and CUDA streams; where layers lie in files
 * is not its business.
 */
@NullMarked
package io.gpunvme.storage.layer;

import org.jspecify.annotations.NullMarked;
