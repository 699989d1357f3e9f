/* The name that a copy gets. */
#ifndef TREE_NAME_H
#define TREE_NAME_H

/* The name under which cp copies `path`: its last component, without slashes at the
 * end; "" where the contents go into DST itself (".", "..", "/"). To free. */
char *tree_name(const char *path);

#endif
