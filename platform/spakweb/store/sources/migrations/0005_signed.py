from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("sources", "0001_squashed_0004_pulls"),
    ]

    operations = [
        migrations.AddField(
            model_name="branch",
            name="signed",
            field=models.CharField(blank=True, db_default="", default="", max_length=43),
        ),
    ]
