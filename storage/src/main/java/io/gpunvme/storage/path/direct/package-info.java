/** The path {@code direct}: NVMe commands of our own, to a controller that this process drives. */
@NullMarked
package io.gpunvme.storage.path.direct;

import org.jspecify.annotations.NullMarked;
