/**
 * What the product is called and which version it is: facts every room above and beside shares.
 *
 * <p>Not in here: anything that moves bytes. Accelerators are in {@code accel}, the movement
 * between a namespace and an accelerator in {@code transfer}.
 */
@NullMarked
package io.gpunvme.core;

import org.jspecify.annotations.NullMarked;
