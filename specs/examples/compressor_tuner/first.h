#define LEVEL 1
#define WINDOW 9
#define MEMORY 1
#define STRATEGY 0
