from ddl.keras.callbacks import *
